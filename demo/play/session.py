"""A session of the page: the pressed buttons, the broker and the services."""

from typing import Any

from demo.play.buttons import BUTTONS, DEFAULTS
from demo.play.drawing import svg_of
from demo.play.own_test import source_of_test
from demo.play.shown import record_bytes, state_of
from demo.play.system import PlayedSystem
from demo.play.verdict import SessionVerdict
from demo.play.words import CannotPress, Press, press_of
from order_messages.states import BY_REFUSAL, OrderState

Json = dict[str, Any]


class PlaySession:
    """A session of the page. The same seed and the same buttons produce the same bytes in Pyodide and in CPython."""

    def __init__(self, seed: int) -> None:
        """Starts the broker and the services. Call `close` at the end."""
        self.seed = seed
        self.pressed: list[Press] = []
        self._system = PlayedSystem(seed)

    def press(self, name: str, **arguments: Any) -> None:
        """Executes the button's action, and returns when the broker and the services have no more work to do at this time.

        Raises CannotPress.
        """
        button = BUTTONS.get(name)
        if button is None:
            raise CannotPress(f"unknown button {name}: must be one of {', '.join(BUTTONS)}")
        if unknown := arguments.keys() - button.arguments.keys():
            raise CannotPress(f"{name} has no argument {', '.join(sorted(unknown))}")
        for argument, value in arguments.items():
            if type(value) is not type(button.arguments[argument]):
                raise CannotPress(f"{argument} must have the type of {button.arguments[argument]!r}, not be {value!r}")
        if not button.is_enabled(self._system):
            raise CannotPress(f"{name} cannot be pressed now")
        press = Press(name, {**button.arguments, **arguments})
        self._system.do(lambda system: button.press(system, **press.arguments))
        self.pressed.append(press)

    def play(self, *words: str) -> None:
        """Presses the buttons named by the words of a URL. Raises CannotPress at the first button that cannot be pressed."""
        for word in words:
            press = press_of(word, DEFAULTS)
            self.press(press.name, **press.arguments)

    def state(self, language: str = "en") -> Json:
        """Returns the session's state as values for JSON, with its texts in the given language."""
        return state_of(self._system, self.seed, self.pressed, language)

    def record(self, offset: int) -> Json:
        """Returns the bytes of the record at a commit log offset, field by field. Raises CannotPress if there is none."""
        found = record_bytes(self._system.log(), offset)
        if found is None:
            raise CannotPress(f"no record begins at commit log offset {offset}")
        return found

    def diagram(self, word: str, language: str = "en") -> str:
        """Returns the sequence diagram, as SVG, of the transaction with this id or order id.

        Raises CannotPress if there is no such transaction.
        """
        found = self._system.diagram_of(word)
        if found is None:
            raise CannotPress(f"the broker has no transaction with the id or order id {word}")
        return svg_of(found, language)

    def test(self) -> str:
        """Returns the source of a test that repeats this session with the fixture `rocketmq`."""
        orders, entries = self._system.orders.tables()["orders"], self._system.credits.tables()["credits"]
        cancelled = [order for order in orders if order["state"] == OrderState.CANCELLED]
        credits = [entry for entry in entries if not entry["message_id"].startswith(BY_REFUSAL)]
        counts = {"orders": len(orders), "credits": len(credits), "cancelled": len(cancelled)}
        return source_of_test(self.seed, self.pressed, **counts)

    def verdict(self) -> SessionVerdict:
        """Compares the databases and the commit log by the rules of the reconciliation, and returns the verdict."""
        system = self._system
        return system.verdict(system.orders.tables(), system.credits.tables(), system.log())

    def close(self) -> None:
        """Stops the broker and the services, and removes the databases."""
        self._system.close()
