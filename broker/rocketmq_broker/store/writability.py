"""Whether messages are stored at present, and if not, why."""

from __future__ import annotations

from rocketmq_broker.store.errors import StoreUnwritable
from rocketmq_broker.store.log.disk_space import Admission, admission


class Writability:
    """One state out of several causes: a disk that is full, flushes that fall behind, a store that cannot go on."""

    __slots__ = (
        "_admission",
        "_busy",
        "_failing",
        "_full",
        "flush_failures",
        "is_broken",
        "is_everything_refused",
        "is_given_up",
        "refusal",
    )

    def __init__(self) -> None:
        self.refusal: str | None = None
        """Why new messages are refused, or None."""
        self.is_everything_refused = False
        """Whether what ends a transaction is refused as well."""
        self.is_broken = False
        """Whether nothing is stored until the store is opened again."""
        self.is_given_up = False
        """Whether the files are left as they are, too: another broker may be using them."""
        self._admission = Admission.EVERYTHING
        self._full: str | None = None
        self._busy: str | None = None
        self._failing: str | None = None
        self.flush_failures = 0
        """How many flushes of the commit log the disk refused."""

    def note_disk(self, used_ratio: float, warning_ratio: float) -> None:
        """The disk is so full, of 1."""
        self._admission = admission(used_ratio, warning_ratio, self._admission)
        is_full = self._admission is not Admission.EVERYTHING
        # One figure behind the point: "90% full" would not be above 90 %.
        self._full = f"the disk is {used_ratio * 100:.4g}% full; {_ADMITTED[self._admission]}" if is_full else None
        self._settle()

    def note_busy(self, reason: str | None) -> None:
        """Too much waits for the disk already; None if no longer so."""
        self._busy = reason
        self._settle()

    def note_flush(self, failure: str | None) -> None:
        """What was acknowledged could not be brought to the disk, and why; None once it was."""
        self._failing = failure
        self._settle()

    @property
    def is_failing(self) -> bool:
        """Whether what was acknowledged is not on the disk because the disk refused it."""
        return self._failing is not None

    @property
    def is_busy(self) -> bool:
        """Whether too much waits for the disk."""
        return self._busy is not None

    def break_for_good(self, reason: str) -> None:
        """Nothing is stored any more."""
        self.refusal = reason
        self.is_broken = self.is_everything_refused = True

    def give_up(self, reason: str) -> None:
        """Nothing is stored any more, and no file is changed."""
        self.is_given_up = True
        self.break_for_good(reason)

    def refuse_if_given_up(self) -> None:
        """Raises StoreUnwritable."""
        if self.is_given_up:
            raise StoreUnwritable(self.refusal or "")

    def _settle(self) -> None:
        if self.is_broken:
            return
        self.refusal = self._failing or self._busy or self._full
        is_waiting = self._failing is not None or self._busy is not None
        self.is_everything_refused = is_waiting or self._admission is Admission.NOTHING


_ADMITTED = {
    Admission.EVERYTHING: "",
    Admission.ACCEPTED_ONLY: "new messages are refused until there is space (diskSpaceWarningLevelRatio)",
    Admission.NOTHING: "nothing is stored until there is space",
}
