# Images: the broker alone (target `broker`); broker, services and worker (target `services`); and one with Spark, its Java, the
# reconciliation and the demo (target `demo`). What changes seldom comes first in each: a change of our code builds no dependency anew.
# Tags are not pinned by digest: docs/docker.md, "Bounds", says why and how.
# An engine without BuildKit builds all stages above its target: the smallest image comes first.

FROM python:3.11-slim-bookworm AS base
RUN groupadd --system --gid 10001 app \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin app \
 && install -d -o app -g app /data
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app

FROM python:3.11-slim-bookworm AS broker-dependencies
COPY docker/broker.lock .
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --quiet --no-cache-dir --use-pep517 --require-hashes -r broker.lock \
 && /opt/venv/bin/pip uninstall --quiet --yes pip

# The compiler stays in this stage. `--build-arg COMPILED=0` leaves the broker as the Python source that it is, within seconds.
FROM python:3.11-slim-bookworm AS broker-build
COPY docker/compile.lock .
RUN python3 -m venv /opt/compiler \
 && /opt/compiler/bin/pip install --quiet --no-cache-dir --use-pep517 --require-hashes -r compile.lock
ARG COMPILED=1
RUN [ "$COMPILED" = 0 ] || { apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev python3-dev; }
WORKDIR /broker
# What setup.py looks for, and nobody reads here: a changed page compiles nothing.
RUN touch README.md LICENSE
COPY broker/pyproject.toml broker/setup.py ./
COPY broker/build_backend build_backend
COPY broker/rocketmq_broker rocketmq_broker
RUN ROCKETMQ_BROKER_COMPILED=$COMPILED /opt/compiler/bin/python setup.py --quiet build --build-lib /built \
 && find /built -name __pycache__ -prune -exec rm -r {} +

FROM base AS broker
COPY --from=broker-dependencies /opt/venv /opt/venv
COPY docker/image.conf /etc/rocketmq/broker.conf
COPY docker/start-broker docker/check-broker docker/check-http docker/check-patiently /usr/local/bin/
COPY --from=broker-build /built .
USER 10001:10001
VOLUME /data
# Name server, broker, and its VIP channel.
EXPOSE 9876 10911 10909
HEALTHCHECK --interval=2s --timeout=40s --retries=30 CMD ["check-patiently", "check-broker"]
CMD ["start-broker"]

FROM python:3.11-slim-bookworm AS dependencies
COPY docker/services.lock .
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --quiet --no-cache-dir --use-pep517 --require-hashes -r services.lock

FROM base AS services
COPY --from=dependencies /opt/venv /opt/venv
COPY docker/check-http docker/check-patiently /usr/local/bin/
COPY --from=broker-build /built .
COPY order_messages order_messages
COPY order_service order_service
COPY credit_service credit_service
COPY inventory_service inventory_service
COPY service_runtime service_runtime
USER 10001:10001

FROM base AS java
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*

FROM dependencies AS demo-dependencies
COPY docker/demo.lock .
RUN /opt/venv/bin/pip install --quiet --no-cache-dir --use-pep517 --require-hashes -r demo.lock

FROM java AS demo
COPY --from=demo-dependencies /opt/venv /opt/venv
COPY docker/start-spark docker/check-patiently /usr/local/bin/
COPY --from=services /app /app
COPY pipelines pipelines
COPY commitlog/rocketmq_commitlog rocketmq_commitlog
COPY demo demo
USER 10001:10001
