"""Sets up access control, if it is enabled in the settings."""

from collections.abc import Callable

from rocketmq_broker.acl import AccountMistake
from rocketmq_broker.acl.needs import StoredUnder
from rocketmq_broker.app.errors import StartError
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.message import properties as props
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.access import AccessControl, AccountFiles, AclProcessor, NoAclProcessor
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.store import MessageStore, UnreadableRecord


def guard(
    settings: BrokerSettings,
    identity: BrokerIdentity,
    store: MessageStore,
    dispatcher: Dispatcher,
    tasks: Tasks,
    clock: Callable[[], int],
) -> AccessControl | None:
    """Creates access control, adds it to the dispatcher and returns it. Returns None if aclEnable=false.

    Raises StartError if the accounts cannot be read.
    """
    if not settings.acl_enable:
        dispatcher.add(NoAclProcessor().handlers)
        return None
    try:
        access = AccessControl(AccountFiles(settings.acl_file, settings.acl_folder), lambda offset: stored_under(store, offset))
    except (AccountMistake, OSError) as error:
        raise StartError(f"cannot read the accounts (aclEnable=true): {error}") from None
    dispatcher.guard_by(access.check)
    dispatcher.add_disconnect_listener(access.forget)
    dispatcher.add(AclProcessor(access=access, identity=identity, tasks=tasks, clock=clock).handlers)
    tasks.start("following the account files", access.follow())
    return access


def stored_under(store: MessageStore, commit_log_offset: int) -> StoredUnder | None:
    """Returns the topics of the message at this commit log offset, or None if no readable message is stored there."""
    try:
        message = decode_record(store.read(commit_log_offset))
    except UnreadableRecord:
        return None
    topic = message.topic.decode(errors="replace")
    return StoredUnder(topic, message.get_property(props.REAL_TOPIC) or topic)
