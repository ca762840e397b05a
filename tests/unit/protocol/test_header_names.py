"""Compares the names of header fields, and which of them are required (@CFNotNull), with Apache's classes."""

import msgspec
import pytest

from tests.header_types import header_types

APACHE = {
    "AckMessageRequestHeader": "consumerGroup! topic! queueId! extraInfo! offset!",
    "AddWritePermOfBrokerRequestHeader": "brokerName!",
    "AddWritePermOfBrokerResponseHeader": "addTopicCount!",
    "ChangeInvisibleTimeRequestHeader": "consumerGroup! topic! queueId! extraInfo! offset! invisibleTime!",
    "ChangeInvisibleTimeResponseHeader": "popTime! invisibleTime! reviveQid!",
    "CheckTransactionStateRequestHeader": "tranStateTableOffset! commitLogOffset! msgId transactionId offsetMsgId",
    "CloneGroupOffsetRequestHeader": "srcGroup! destGroup! topic offline",
    "ConsumeMessageDirectlyResultRequestHeader": "consumerGroup! clientId msgId brokerName",
    "ConsumerSendMsgBackRequestHeader": "offset! group! delayLevel! originMsgId originTopic unitMode maxReconsumeTimes",
    "CreateAccessConfigRequestHeader": (
        "accessKey! secretKey whiteRemoteAddress admin defaultTopicPerm defaultGroupPerm topicPerms groupPerms"
    ),
    "CreateTopicRequestHeader": (
        "topic! defaultTopic! readQueueNums! writeQueueNums! perm! topicFilterType! topicSysFlag order!"
    ),
    "DeleteAccessConfigRequestHeader": "accessKey!",
    "DeleteKVConfigRequestHeader": "namespace! key!",
    "DeleteSubscriptionGroupRequestHeader": "groupName! removeOffset",
    "DeleteTopicFromNamesrvRequestHeader": "topic! clusterName",
    "DeleteTopicRequestHeader": "topic!",
    "EndTransactionRequestHeader": (
        "producerGroup! tranStateTableOffset! commitLogOffset! commitOrRollback! fromTransactionCheck msgId! transactionId"
    ),
    "GetBrokerAclConfigResponseHeader": "version! allAclFileVersion brokerName! brokerAddr! clusterName!",
    "GetBrokerConfigResponseHeader": "version!",
    "GetConsumeStatsInBrokerHeader": "isOrder!",
    "GetConsumeStatsRequestHeader": "consumerGroup! topic",
    "GetConsumerConnectionListRequestHeader": "consumerGroup!",
    "GetConsumerListByGroupRequestHeader": "consumerGroup!",
    "GetConsumerRunningInfoRequestHeader": "consumerGroup! clientId! jstackEnable",
    "GetConsumerStatusRequestHeader": "topic! group! clientAddr",
    "GetEarliestMsgStoretimeRequestHeader": "topic! queueId!",
    "GetEarliestMsgStoretimeResponseHeader": "timestamp!",
    "GetKVConfigRequestHeader": "namespace! key!",
    "GetKVConfigResponseHeader": "value",
    "GetKVListByNamespaceRequestHeader": "namespace!",
    "GetMaxOffsetRequestHeader": "topic! queueId!",
    "GetMaxOffsetResponseHeader": "offset!",
    "GetMinOffsetRequestHeader": "topic! queueId!",
    "GetMinOffsetResponseHeader": "offset!",
    "GetProducerConnectionListRequestHeader": "producerGroup!",
    "GetRouteInfoRequestHeader": "topic! acceptStandardJsonOnly",
    "GetTopicConfigRequestHeader": "topic!",
    "GetTopicStatsInfoRequestHeader": "topic!",
    "GetTopicsByClusterRequestHeader": "cluster!",
    "NotificationRequestHeader": "consumerGroup! topic! queueId! pollTime! bornTime! order attemptId",
    "NotificationResponseHeader": "hasMsg! pollingFull",
    "NotifyConsumerIdsChangedRequestHeader": "consumerGroup!",
    "PopMessageRequestHeader": (
        "consumerGroup! topic! queueId! maxMsgNums! invisibleTime! pollTime! bornTime! initMode! expType exp order attemptId"
    ),
    "PopMessageResponseHeader": "popTime! invisibleTime! reviveQid! restNum! startOffsetInfo msgOffsetInfo orderCountInfo",
    "PullMessageRequestHeader": (
        "consumerGroup! topic! queueId! queueOffset! maxMsgNums! sysFlag! commitOffset! suspendTimeoutMillis! "
        "subscription subVersion! expressionType"
    ),
    "PullMessageResponseHeader": "suggestWhichBrokerId! nextBeginOffset! minOffset! maxOffset!",
    "PutKVConfigRequestHeader": "namespace! key! value!",
    "QueryConsumeQueueRequestHeader": "topic queueId index count consumerGroup",
    "QueryConsumeTimeSpanRequestHeader": "topic! group!",
    "QueryConsumerOffsetRequestHeader": "consumerGroup! topic! queueId!",
    "QueryConsumerOffsetResponseHeader": "offset!",
    "QueryCorrectionOffsetHeader": "filterGroups compareGroup! topic!",
    "QueryDataVersionRequestHeader": "brokerName! brokerAddr! clusterName! brokerId!",
    "QueryDataVersionResponseHeader": "changed!",
    "QueryMessageRequestHeader": "topic! key! maxNum! beginTimestamp! endTimestamp!",
    "QueryMessageResponseHeader": "indexLastUpdateTimestamp! indexLastUpdatePhyoffset!",
    "QueryTopicConsumeByWhoRequestHeader": "topic!",
    "RegisterBrokerRequestHeader": "brokerName! brokerAddr! clusterName! haServerAddr! brokerId! compressed bodyCrc32",
    "RegisterBrokerResponseHeader": "haServerAddr masterAddr",
    "ReplyMessageRequestHeader": (
        "producerGroup! topic! defaultTopic! defaultTopicQueueNums! queueId! sysFlag! bornTimestamp! flag! "
        "properties reconsumeTimes unitMode bornHost! storeHost! storeTimestamp!"
    ),
    "ResetOffsetRequestHeader": "topic! group! timestamp! isForce!",
    "ResumeCheckHalfMessageRequestHeader": "msgId",
    "SearchOffsetRequestHeader": "topic! queueId! timestamp!",
    "SearchOffsetResponseHeader": "offset!",
    "SendMessageRequestHeader": (
        "producerGroup! topic! defaultTopic! defaultTopicQueueNums! queueId! sysFlag! bornTimestamp! flag! "
        "properties reconsumeTimes unitMode batch maxReconsumeTimes"
    ),
    "SendMessageRequestHeaderV2": "a! b! c! d! e! f! g! h! i j k l m n",
    "SendMessageResponseHeader": "msgId! queueId! queueOffset! transactionId",
    "UnRegisterBrokerRequestHeader": "brokerName! brokerAddr! clusterName! brokerId!",
    "UnregisterClientRequestHeader": "clientID! producerGroup consumerGroup",
    "UpdateConsumerOffsetRequestHeader": "consumerGroup! topic! queueId! commitOffset!",
    "UpdateGlobalWhiteAddrsConfigRequestHeader": "globalWhiteAddrs! aclFileFullPath!",
    "ViewBrokerStatsDataRequestHeader": "statsName! statsKey!",
    "ViewMessageRequestHeader": "offset!",
    "WipeWritePermOfBrokerRequestHeader": "brokerName!",
    "WipeWritePermOfBrokerResponseHeader": "wipeTopicCount!",
}
"""Class -> its fields as Apache's 4.9.7 declares them, those of GET_TOPIC_CONFIG and of pops as 5.3.3 does.

`!` marks those that may not be null.
"""

FIELDS_OF_ROCKETMQ_5 = {"bname", "attributes"}
ADDED_OUTSIDE_OF_THE_CLASS = {"_UNIQUE_KEY_QUERY", "MSG_REGION", "TRACE_ON"}
"""Apache's code puts these among a command's extension fields by hand."""
NOT_INSISTED_ON = {
    "CreateTopicRequestHeader": {"order"},
    "NotificationRequestHeader": {"bornTime"},
    "PopMessageRequestHeader": {"bornTime"},
    "UpdateGlobalWhiteAddrsConfigRequestHeader": {"aclFileFullPath"},
}
"""Fields that older clients leave out, and without which it is clear what is meant."""
INSISTED_ON = {"GetBrokerAclConfigResponseHeader": {"allAclFileVersion"}}


def apaches_fields(name: str) -> dict[str, bool]:
    """Returns, for each field, whether it is required."""
    return {field.removesuffix("!"): field.endswith("!") for field in APACHE[name].split()}


@pytest.mark.parametrize("name", APACHE)
def test_a_header_has_the_fields_that_apaches_class_has(name: str) -> None:
    names = set(header_types()[name].__struct_encode_fields__)
    assert names - FIELDS_OF_ROCKETMQ_5 - ADDED_OUTSIDE_OF_THE_CLASS == set(apaches_fields(name))


@pytest.mark.parametrize("name", APACHE)
def test_a_header_has_to_have_what_apaches_class_has_to_have(name: str) -> None:
    required = {field.encode_name for field in msgspec.structs.fields(header_types()[name]) if field.required}
    of_apache = {field for field, is_required in apaches_fields(name).items() if is_required}
    assert required - INSISTED_ON.get(name, set()) == of_apache - NOT_INSISTED_ON.get(name, set())


def test_every_header_is_apaches_or_known_to_be_our_own() -> None:
    assert header_types().keys() - APACHE.keys() == {
        "DecideTransactionRequestHeader",
        "DismissDeadLetterRequestHeader",
        "ListDecidedTransactionsRequestHeader",
        "ListMarksRequestHeader",
        "ListPendingTransactionsRequestHeader",
        "RetryDeadLetterRequestHeader",
        "ShowTransactionRequestHeader",
    }
