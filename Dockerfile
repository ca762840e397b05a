# Three images: the broker alone (target `broker`); broker, services and worker (target `services`); and one that adds Spark and its
# Java for the demo (target `demo`).
# An engine without BuildKit builds all stages above its target: the smallest image comes first.

FROM python:3.11-slim-bookworm AS broker-dependencies
COPY docker/broker.lock .
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --quiet --no-cache-dir --use-pep517 --require-hashes -r broker.lock \
 && /opt/venv/bin/pip uninstall --quiet --yes pip

FROM python:3.11-slim-bookworm AS broker
RUN useradd --system --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin app \
 && install -d -o app -g app /data
COPY --from=broker-dependencies /opt/venv /opt/venv
COPY docker/image.conf /etc/rocketmq/broker.conf
COPY docker/start-broker docker/check-broker /usr/local/bin/
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY broker broker
USER app
VOLUME /data
# Name server, broker, and its VIP channel.
EXPOSE 9876 10911 10909
HEALTHCHECK --interval=2s --timeout=5s --retries=30 CMD ["check-broker"]
CMD ["start-broker"]

FROM python:3.11-slim-bookworm AS dependencies
COPY docker/services.lock .
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --quiet --no-cache-dir --use-pep517 --require-hashes -r services.lock

FROM python:3.11-slim-bookworm AS services
RUN useradd --system --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin app \
 && install -d -o app -g app /data
COPY --from=dependencies /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY broker broker
COPY order_messages order_messages
COPY order_service order_service
COPY credit_service credit_service
COPY inventory_service inventory_service
COPY service_runtime service_runtime
USER app

FROM services AS demo
USER root
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
COPY docker/demo.lock .
RUN pip install --quiet --no-cache-dir --use-pep517 --require-hashes -r demo.lock
COPY pipelines pipelines
COPY rocketmq_commitlog rocketmq_commitlog
COPY demo demo
USER app
