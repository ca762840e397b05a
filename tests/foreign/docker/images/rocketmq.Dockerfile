# Stand-in for the official image: the same home, user and version; a Java that is newer, and told to open what RocketMQ 4.9 reaches into.
FROM java-17-stand-in
ENV ROCKETMQ_VERSION=4.9.7 ROCKETMQ_HOME=/home/rocketmq/rocketmq-4.9.7
ENV JDK_JAVA_OPTIONS="--add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/jdk.internal.ref=ALL-UNNAMED --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED --add-exports=java.base/sun.nio.ch=ALL-UNNAMED"
RUN groupadd -g 3000 rocketmq \
 && useradd -l -u 3000 -g 3000 -m -s /bin/bash rocketmq \
 && install -d -o rocketmq -g rocketmq "$ROCKETMQ_HOME/conf"
COPY --chown=3000:3000 lib ${ROCKETMQ_HOME}/lib
USER rocketmq
WORKDIR ${ROCKETMQ_HOME}
