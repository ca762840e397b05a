"""Groups the options of typer commands in dataclasses, in which each field is an option."""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any


def with_groups(
    *, without: frozenset[str] = frozenset(), behind: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Expands the dataclass parameters of a command. Each field becomes an option, at the position of the dataclass.

    Fields in `without` do not become options and keep their default. `behind` maps an option to the option before it in
    `--help`.
    """

    def spread(command: Callable[..., None]) -> Callable[..., None]:
        options: dict[str, Parameter] = {}
        groups: dict[str, tuple[type, list[str]]] = {}
        for parameter in signature(command, eval_str=True).parameters.values():
            group = parameter.annotation
            if not (isinstance(group, type) and is_dataclass(group)):
                options[parameter.name] = parameter
                continue
            fields = {name: field for name, field in signature(group, eval_str=True).parameters.items() if name not in without}
            groups[parameter.name] = (group, list(fields))
            options |= fields

        def called(**given: Any) -> None:
            for name, (group, fields) in groups.items():
                given[name] = group(**{field: given.pop(field) for field in fields})
            command(**given)

        called.__doc__ = command.__doc__
        order = list(options)
        for moved, before in (behind or {}).items():
            order.remove(moved)
            order.insert(order.index(before) + 1, moved)
        called.__signature__ = Signature([options[name].replace(kind=Parameter.KEYWORD_ONLY) for name in order])  # type: ignore[attr-defined]
        return called

    return spread
