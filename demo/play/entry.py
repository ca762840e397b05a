"""The entry point for the page's web worker. Calls and their results are JSON texts."""

import json
from collections.abc import Mapping
from typing import Any

from demo.play.drawing import replayed
from demo.play.rounds import rounds_in
from demo.play.session import PlaySession
from demo.play.words import CannotPress

Json = Any


class Page:
    """The session of one page, and the calls that the page makes."""

    def __init__(self) -> None:
        """Creates a page without a session. Call `start` to start a session."""
        self._session: PlaySession | None = None

    def start(self, seed: int) -> None:
        """Starts a session. Ends the previous session, if there is one."""
        self.close()
        self._session = PlaySession(seed)

    def close(self) -> None:
        """Ends the session, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def call(self, json_text: str) -> str:
        """Executes a call, such as `{"do": "press", "button": "place"}`. Returns `{"result": …}` or `{"error": "a sentence"}`.

        do        other members           result
        start     seed                    null
        press     button, arguments       null
        play      words                   null; presses the buttons named by the words of a URL
        state     language                the values that the page shows
        record    offset                  the record's fields, with their bytes
        diagram   word, language          the diagram of one transaction, by its id or its order's id
        test                              the source of a test that repeats the session
        rounds    language                the guided rounds
        replay    history, language       a history of check(), on Apache's broker and on this broker: name and HTML
        """
        try:
            answer = {"result": self._result(json.loads(json_text))}
        except CannotPress as error:
            answer = {"error": str(error)}
        except Exception as error:
            # The page shows one sentence, and never a traceback.
            answer = {"error": f"{type(error).__name__}: {error}".partition("\n")[0]}
        return json.dumps(answer, ensure_ascii=False)

    def _result(self, call: Mapping[str, Json]) -> Json:
        what, language = call.get("do"), str(call.get("language", "en"))
        if what == "start":
            return self.start(int(call["seed"]))
        if what == "rounds":
            return rounds_in(language)
        if what == "replay":
            return replayed(str(call.get("history", "")), language)
        session = self._session
        if session is None:
            raise CannotPress("there is no session: start one first")
        if what == "press":
            return session.press(str(call["button"]), **call.get("arguments", {}))
        if what == "play":
            return session.play(*map(str, call["words"]))
        if what == "state":
            return session.state(language)
        if what == "record":
            return session.record(int(call["offset"]))
        if what == "diagram":
            return session.diagram(str(call["word"]), language)
        if what == "test":
            return session.test()
        raise CannotPress(f"unknown call {what!r}")


_page = Page()
call = _page.call
start = _page.start
close = _page.close
