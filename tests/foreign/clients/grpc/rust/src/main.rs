//! Apache's Rust client of RocketMQ 5, unchanged: each case prints a line, its name and `ok`, or what went wrong.
//!
//! conformance HOST:PORT PREFIX [CASE...]: these cases, or all, at once, each with a topic that begins with the prefix.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{anyhow, ensure, Result};
use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{Message, MessageBuilder, MessageView};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};
use tokio::sync::mpsc;
use tokio::time::timeout;

const WITHIN: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(30);
const INVISIBLE: Duration = Duration::from_secs(30);

const CASES: [&str; 12] = [
    "plain-message",
    "fifo-messages",
    "delayed-message",
    "tag-filter",
    "sql-filter",
    "invisible-time-changed",
    "transaction-committed",
    "transaction-rolled-back",
    "lost-decision-checked-back",
    "push-consumer-with-a-retry",
    "push-consumer-to-dead-letters",
    "fifo-push-consumer-to-dead-letters",
];

#[derive(Clone)]
struct Case {
    endpoint: String,
    topic: String,
}

impl Case {
    fn client(&self) -> ClientOption {
        let mut option = ClientOption::default();
        option.set_access_url(self.endpoint.clone());
        option.set_enable_tls(false);
        option.set_timeout(PATIENCE);
        option.set_long_polling_timeout(Duration::from_secs(2));
        option
    }

    fn settings(&self) -> ProducerOption {
        let mut option = ProducerOption::default();
        option.set_topics(vec![self.topic.clone()]);
        option.set_validate_message_type(false);
        option
    }

    async fn send(&self, messages: Vec<impl Message>) -> Result<()> {
        let mut producer = Producer::new(self.settings(), self.client())?;
        producer.start().await?;
        for message in messages {
            ensure!(!producer.send(message).await?.message_id().is_empty());
        }
        Ok(producer.shutdown().await?)
    }

    /// A producer whose check-backs are answered with COMMIT or ROLLBACK, and tell that they were asked.
    async fn transactional(&self, commits: bool) -> Result<(Producer, mpsc::UnboundedReceiver<()>)> {
        let (asked, asks) = mpsc::unbounded_channel();
        let checker = move |_: String, _: MessageView| {
            let _ = asked.send(());
            if commits { TransactionResolution::COMMIT } else { TransactionResolution::ROLLBACK }
        };
        let mut producer = Producer::new_transaction_producer(self.settings(), self.client(), Box::new(checker))?;
        producer.start().await?;
        Ok((producer, asks))
    }

    async fn consumer(&self) -> Result<SimpleConsumer> {
        let mut option = SimpleConsumerOption::default();
        option.set_topics(vec![self.topic.clone()]);
        option.set_consumer_group(format!("group-{}", self.topic));
        let mut consumer = SimpleConsumer::new(option, self.client())?;
        consumer.start().await?;
        Ok(consumer)
    }

    /// So many messages; fewer when the time is up.
    async fn received(&self, consumer: &SimpleConsumer, count: usize, filter: &FilterExpression) -> Result<Vec<MessageView>> {
        let (mut found, began) = (Vec::new(), Instant::now());
        while found.len() < count && began.elapsed() < WITHIN {
            found.extend(consumer.receive_with(&self.topic, filter, 16, INVISIBLE).await?);
        }
        Ok(found)
    }

    async fn expect_received(&self, expected: &[&str], filter: FilterExpression) -> Result<()> {
        let consumer = self.consumer().await?;
        let found = bodies(&self.received(&consumer, expected.len(), &filter).await?);
        ensure!(found == expected, "received {found:?}");
        Ok(consumer.shutdown().await?)
    }

    fn plain(&self, body: &str) -> MessageBuilder {
        MessageBuilder::builder().set_topic(self.topic.clone()).set_body(body.into())
    }

    fn half(&self) -> MessageBuilder {
        MessageBuilder::transaction_message_builder(self.topic.clone(), "tx".into())
    }
}

fn all() -> FilterExpression {
    FilterExpression::new(FilterType::Tag, "*")
}

fn bodies(messages: &[MessageView]) -> Vec<String> {
    messages.iter().map(|one| String::from_utf8_lossy(one.body()).into_owned()).collect()
}

async fn run(name: &str, case: &Case) -> Result<()> {
    match name {
        "plain-message" => {
            let sent = case.plain("hello").set_tag("red").set_keys(vec!["a"]).set_properties(HashMap::from([("x", "y")]));
            case.send(vec![sent.build()?]).await?;
            let consumer = case.consumer().await?;
            let found = case.received(&consumer, 1, &all()).await?;
            let got = found.first().ok_or_else(|| anyhow!("received nothing"))?;
            ensure!(got.body() == b"hello" && got.tag() == Some("red") && got.keys() == ["a"], "received {got:?}");
            ensure!(got.properties().get("x").map(String::as_str) == Some("y"), "properties {:?}", got.properties());
            consumer.ack(got).await?;
            let more = consumer.receive_with(&case.topic, &all(), 16, INVISIBLE).await?;
            ensure!(more.is_empty(), "received again {more:?}");
            Ok(consumer.shutdown().await?)
        }
        "fifo-messages" => {
            let numbers = ["0", "1", "2", "3", "4"];
            let one = |number: &&str| MessageBuilder::fifo_message_builder(case.topic.clone(), (*number).into(), "g").build();
            case.send(numbers.iter().map(one).collect::<Result<Vec<_>, _>>()?).await?;
            case.expect_received(&numbers, all()).await
        }
        "delayed-message" => {
            let due_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 3;
            let later = MessageBuilder::delay_message_builder(case.topic.clone(), "later".into(), i64::try_from(due_s)?);
            case.send(vec![later.build()?]).await?;
            case.expect_received(&["later"], all()).await?;
            ensure!(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() >= due_s, "it came too early");
            Ok(())
        }
        "tag-filter" => {
            let tagged = ["red", "blue"].map(|tag| case.plain(tag).set_tag(tag).build());
            case.send(tagged.into_iter().collect::<Result<Vec<_>, _>>()?).await?;
            case.expect_received(&["blue"], FilterExpression::new(FilterType::Tag, "blue")).await
        }
        "sql-filter" => {
            let priced = [("little", "5"), ("much", "50")]
                .map(|(body, price)| case.plain(body).set_properties(HashMap::from([("price", price)])).build());
            case.send(priced.into_iter().collect::<Result<Vec<_>, _>>()?).await?;
            case.expect_received(&["much"], FilterExpression::new(FilterType::Sql, "price > 10")).await
        }
        "transaction-committed" => {
            let (producer, _) = case.transactional(true).await?;
            producer.send_transaction_message(case.half().build()?).await?.commit().await?;
            case.expect_received(&["tx"], all()).await?;
            Ok(producer.shutdown().await?)
        }
        "transaction-rolled-back" => {
            let (producer, _) = case.transactional(false).await?;
            producer.send_transaction_message(case.half().build()?).await?.rollback().await?;
            producer.shutdown().await?;
            case.send(vec![case.plain("after").build()?]).await?;
            case.expect_received(&["after"], all()).await
        }
        "lost-decision-checked-back" => {
            let (producer, mut asks) = case.transactional(true).await?;
            producer.send_transaction_message(case.half().build()?).await?;
            timeout(WITHIN, asks.recv()).await.map_err(|_| anyhow!("no check-back"))?;
            case.expect_received(&["tx"], all()).await?;
            Ok(producer.shutdown().await?)
        }
        _ => Err(anyhow!("the client has neither a push consumer nor a change of the invisible time")),
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (endpoint, prefix, chosen) = (&arguments[0], &arguments[1], &arguments[2..]);
    let mut running = Vec::new();
    for name in CASES.into_iter().filter(|name| chosen.is_empty() || chosen.iter().any(|one| one == name)) {
        let case = Case { endpoint: endpoint.clone(), topic: format!("{prefix}{name}") };
        running.push((name, tokio::spawn(async move { run(name, &case).await })));
    }
    for (name, ended) in running {
        match ended.await {
            Ok(Ok(())) => println!("{name} ok"),
            Ok(Err(error)) => println!("{name} {error:?}"),
            Err(panic) => println!("{name} {panic}"),
        }
    }
}
