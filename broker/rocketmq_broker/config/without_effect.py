"""The properties of RocketMQ that this broker accepts and ignores, such as those of thread pools and replication."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_NAMES = """
    accessMessageInMemoryMaxRatio adminBrokerThreadPoolNums autoDeleteUnusedStats bitMapLengthConsumeQueueExt
    brokerFastFailureEnable brokerIP2 channelNotActiveInterval checkCRCOnRecover
    clientAsyncSemaphoreValue clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout
    clientManageThreadPoolNums clientManagerThreadPoolQueueCapacity clientOnewaySemaphoreValue
    clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize clientWorkerThreads commercialBaseCount
    commercialBigCount commercialEnable commercialTimerCount commercialTransCount commitCommitLogLeastPages
    commitCommitLogThoroughInterval commitIntervalCommitLog compressedRegister connectTimeoutMillis consumerFallbehindThreshold
    consumerManageThreadPoolNums consumerManagerThreadPoolQueueCapacity dLegerGroup dLegerPeers dLegerSelfId debugLockEnable
    defaultQueryMaxNum deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval destroyMapedFileIntervalForcibly
    disableConsumeIfConsumerReadSlowly diskFallRecorded duplicationEnable enableCalcFilterBitMap enableConsumeQueueExt
    enableDLegerCommitLog enableDetailStat enableLmq enableMultiDispatch enableScheduleAsyncDeliver
    enableScheduleMessageStats endTransactionPoolQueueCapacity endTransactionThreadPoolNums expectConsumerNumUseFilter
    fastFailIfNoBufferInStorePool fetchNamesrvAddrByAddressServer filterDataCleanTimeSpan filterServerNums filterSupportRetry
    flushCommitLogLeastPages flushCommitLogThoroughInterval flushCommitLogTimed flushConsumeQueueLeastPages
    flushConsumeQueueThoroughInterval flushConsumerOffsetHistoryInterval flushIntervalConsumeQueue
    flushLeastPagesWhenWarmMapedFile forceRegister haHousekeepingInterval haListenPort haMasterAddress haSendHeartbeatInterval
    haSlaveFallbehindMax haTransferBatchSize heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity highSpeedMode
    isEnableBatchPush isolateLogEnable mappedFileSizeConsumeQueueExt maxDelayTime maxErrorRateOfBloomFilter
    maxLmqConsumeQueueNum maxMsgsNumBatch maxTransferBytesOnMessageInDisk maxTransferCountOnMessageInDisk messageIndexSafe
    metricGrpcExporterIntervalInMills metricGrpcExporterTimeOutInMills metricLoggingExporterIntervalInMills
    metricsGrpcExporterHeader metricsGrpcExporterTarget metricsInDelta metricsOtelCardinalityLimit
    messageStorePlugIn offsetCheckInSlave osPageCacheBusyTimeOutMills preferredLeaderId processReplyMessageThreadPoolNums
    pullMessageThreadPoolNums pullThreadPoolQueueCapacity putMessageFutureThreadPoolNums putMsgIndexHightWater
    putThreadPoolQueueCapacity queryMessageThreadPoolNums queryThreadPoolQueueCapacity readOnlyCommitLogStorePaths
    redeleteHangedFileInterval registerBrokerTimeoutMills replyThreadPoolQueueCapacity
    scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked sendMessageThreadPoolNums
    sendThreadPoolQueueCapacity serverAsyncSemaphoreValue serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds
    serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable serverSelectorThreads serverSocketBacklog
    serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads slaveReadEnable slaveTimeout
    startAcceptSendRequestTimeStamp storePathDLedgerCommitLog transferMsgByHeap
    transientStorePoolEnable transientStorePoolSize useEpollNativeSelector useReentrantLockWhenPutMessage useTLS
    waitTimeMillsInHeartbeatQueue waitTimeMillsInPullQueue waitTimeMillsInSendQueue waitTimeMillsInTransactionQueue
    tls.server.authClient warmMapedFileEnable writeBufferHighWaterMark writeBufferLowWaterMark
"""

WITHOUT_EFFECT: Final = frozenset(_NAMES.split())

FIXED_VALUES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "clientCallbackExecutorThreads": str(os.cpu_count() or 1),  # mqadmin exportMetrics shows this as the number of processors
        "duplicationEnable": "false",
        "enableCalcFilterBitMap": "false",
        "enableConsumeQueueExt": "false",
        "enableDLegerCommitLog": "false",
        "enableLmq": "false",
        "enableMultiDispatch": "false",
        "filterServerNums": "0",
        "messageStorePlugIn": "",
        "slaveReadEnable": "false",
        "transientStorePoolEnable": "false",
        "warmMapedFileEnable": "false",
    }
)
"""Maps some properties without effect to values that describe this broker.

GET_BROKER_CONFIG also returns these, because Apache's tools fail if one of them is missing (ExportConfigsCommand,
ExportMetricsCommand).
"""
