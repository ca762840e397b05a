"""Prints each check() of Apache's broker for one history, and the state of this broker at that time."""

import sys

from rocketmq_broker.admin.replay import HISTORIES, CheckPass, ReplayRow, replay


def written(one: CheckPass) -> str:
    """Formats what check() wrote: the copies, by their offsets in the half topic, and the discarded messages."""
    copies = [f"put back {offset} as {copy}, count {checks}" for _, offset, copy, checks, _ in one.put_back]
    return ", ".join([*copies, *(f"discarded {name}" for name in one.discarded)]) or "nothing"


def line(row: ReplayRow) -> str:
    """Formats a check() as one line of text."""
    one = row.apache
    return (
        f"{one.at_ms // 60_000:2} min | removeMap {one.remove_map}, done {one.done_op_offsets} | {written(one)} | "
        f"offsets {one.half_offset} and {one.op_offset} | half topic {one.halves}, here {row.ours.halves}"
    )


def main(name: str) -> None:
    """Plays the history `name` on both brokers, and prints the results."""
    played = replay(HISTORIES[name])
    print(*map(line, played.rows), sep="\n")
    print(f"check-backs {played.apache.check_backs}, here {played.ours.check_backs}; ", end="")
    print(f"deliveries {played.apache.deliveries}, here {played.ours.deliveries}")


if __name__ == "__main__":
    main(sys.argv[1])
