/** Apache's Node client of RocketMQ 5, unchanged: each case prints a line, its name and `ok`, or what went wrong. */
// node cases.mjs HOST:PORT PREFIX [CASE...]: these cases, or all, at once, each with a topic that begins with the prefix.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';

const client = createRequire(path.join(process.cwd(), 'package.json'))('rocketmq-client-nodejs');
const { ConsumeResult, FilterExpression, Producer, PushConsumer, SimpleConsumer } = client;

const WITHIN_MS = 120_000;
const PATIENCE_MS = 30_000;  // of a request; a client that sends again after less may send twice
const COMMIT = 1, ROLLBACK = 2;  // TransactionResolution of the API
const SQL = 2;  // FilterType of the API
const quiet = { debug() {}, info() {}, warn: console.error, error: console.error };
const [endpoints, prefix, ...chosen] = process.argv.slice(2);
const configuration = { endpoints, namespace: '', logger: quiet, requestTimeout: PATIENCE_MS };

const message = (topic, body, more = {}) => ({ topic, body: Buffer.from(body), ...more });
const bodies = messages => messages.map(one => one.body.toString());

async function started(one) {
  await one.startup();
  return one;
}

const producer = (topic, answer, asked = () => {}) => started(new Producer({
  ...configuration,
  topic,
  checker: { async check() { asked(); return answer; } },
}));

async function send(topic, ...messages) {
  const sender = await producer(topic);
  for (const one of messages) assert((await sender.send(one)).messageId);
  await sender.shutdown();
}

const simple = (topic, expression = '*') => started(new SimpleConsumer({
  ...configuration,
  consumerGroup: `group-${topic.replace('%DLQ%group', 'dead')}`,
  subscriptions: new Map([[topic, expression]]),
  awaitDuration: 2000,
}));

/** So many messages; fewer when the time is up. */
async function received(consumer, count, invisibleMs = 30_000) {
  const found = [];
  for (const until = Date.now() + WITHIN_MS; found.length < count && Date.now() < until;) {
    found.push(...await consumer.receive(16, invisibleMs));
  }
  return found;
}

function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(what())), WITHIN_MS); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The attempts of one message in a push consumer that fails so often. After two failures it has to be a dead letter. */
async function attempts(topic, failures, one, times = 2) {
  const attempts = [];
  let done;
  const delivered = new Promise(resolve => { done = resolve; });
  const consumer = await started(new PushConsumer({
    ...configuration,
    consumerGroup: `group-${topic}`,
    subscriptions: new Map([[topic, '*']]),
    messageListener: {
      async consume(view) {
        attempts.push(view.deliveryAttempt);
        if (attempts.length === times) done();
        return attempts.length <= failures ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
      },
    },
  }));
  await send(topic, one);
  await within(delivered, () => `delivered only ${attempts}`);
  if (failures === 2) await expectReceived(`%DLQ%group-${topic}`, ['hello']);
  await consumer.shutdown();
  return attempts;
}

async function expectReceived(topic, expected, expression) {
  const consumer = await simple(topic, expression);
  assert.deepEqual(bodies(await received(consumer, expected.length)), expected);
  await consumer.shutdown();
}

const cases = {
  'plain-message': async topic => {
    await send(topic, message(topic, 'hello', { tag: 'red', keys: ['a'], properties: new Map([['x', 'y']]) }));
    const consumer = await simple(topic);
    const [got] = await received(consumer, 1);
    assert.deepEqual([got.body.toString(), got.tag, got.keys, got.properties.get('x')], ['hello', 'red', ['a'], 'y']);
    await consumer.ack(got);
    assert.deepEqual(await consumer.receive(16, 15_000), []);
    await consumer.shutdown();
  },
  'fifo-messages': async topic => {
    const numbers = ['0', '1', '2', '3', '4'];
    await send(topic, ...numbers.map(number => message(topic, number, { messageGroup: 'g' })));
    await expectReceived(topic, numbers);
  },
  'delayed-message': async topic => {
    const dueMs = Date.now() + 2000;
    await send(topic, message(topic, 'later', { deliveryTimestamp: new Date(dueMs) }));
    await expectReceived(topic, ['later']);
    assert(Date.now() >= dueMs, 'it came too early');
  },
  'tag-filter': async topic => {
    await send(topic, message(topic, 'red', { tag: 'red' }), message(topic, 'blue', { tag: 'blue' }));
    await expectReceived(topic, ['blue'], 'blue');
  },
  'sql-filter': async topic => {
    const priced = price => ({ properties: new Map([['price', price]]) });
    await send(topic, message(topic, 'little', priced('5')), message(topic, 'much', priced('50')));
    await expectReceived(topic, ['much'], new FilterExpression('price > 10', SQL));
  },
  'invisible-time-changed': async topic => {
    await send(topic, message(topic, 'again'));
    const consumer = await simple(topic);
    const [first] = await received(consumer, 1, 300_000);
    await consumer.changeInvisibleDuration(first, 2000);
    const [second] = await received(consumer, 1);
    assert.equal(second.deliveryAttempt, 2);
    await consumer.ack(second);
    await consumer.shutdown();
  },
  'transaction-committed': async topic => {
    const sender = await producer(topic, COMMIT);
    const transaction = sender.beginTransaction();
    await sender.send(message(topic, 'tx'), transaction);
    await transaction.commit();
    await expectReceived(topic, ['tx']);
    await sender.shutdown();
  },
  'transaction-rolled-back': async topic => {
    const sender = await producer(topic, ROLLBACK);
    const transaction = sender.beginTransaction();
    await sender.send(message(topic, 'tx'), transaction);
    await transaction.rollback();
    await sender.shutdown();
    await send(topic, message(topic, 'after'));
    await expectReceived(topic, ['after']);
  },
  'lost-decision-checked-back': async topic => {
    let answered;
    const asked = new Promise(resolve => { answered = resolve; });
    const sender = await producer(topic, COMMIT, answered);
    await sender.send(message(topic, 'tx'), sender.beginTransaction());
    await within(asked, () => 'no check-back');
    await expectReceived(topic, ['tx']);
    await sender.shutdown();
  },
  'push-consumer-with-a-retry': async topic => {
    assert.deepEqual(await attempts(topic, 1, message(topic, 'hello')), [1, 2]);
  },
  'push-consumer-to-dead-letters': async topic => {
    assert.deepEqual(await attempts(topic, 2, message(topic, 'hello')), [1, 2]);
  },
  'fifo-push-consumer-to-dead-letters': async topic => {
    // The client knows no list of pauses between attempts, and gives up after one.
    assert.deepEqual(await attempts(topic, 2, message(topic, 'hello', { messageGroup: 'g' }), 1), [1]);
  },
};

async function lineOf([name, run]) {
  try {
    await run(prefix + name);
    return `${name} ok`;
  } catch (error) {
    return `${name} ${JSON.stringify(error.stack)}`;
  }
}

const lines = await Promise.all(Object.entries(cases).filter(([name]) => !chosen.length || chosen.includes(name)).map(lineOf));
process.stdout.write(`${lines.join('\n')}\n`, () => process.exit(0));
