"""Rules and faults that make a service's database refuse all rows or some, with statements to set them up and remove them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from sqlalchemy import Engine, create_engine, text

_ROLE = "service"


@dataclass(frozen=True, slots=True)
class Rule:
    """The statements that set up and remove a rule in one kind of database."""

    broken: Sequence[str]
    mended: Sequence[str]

    def is_set_up(self, engine: Engine) -> None:
        _execute(engine, self.broken)

    def is_mended(self, engine: Engine) -> None:
        _execute(engine, self.mended)


_SCHEMA_READ_AGAIN = ("PRAGMA writable_schema=RESET", "CREATE TABLE other (number INT)", "DROP TABLE other")
"""Connections that are open notice a change of the schema by its version, which a table made and dropped raises."""


def rules(dialect: str, table: str, column: str, largest: int, *, too_narrow: str) -> dict[str, Rule]:
    """Returns the rules for INSERTs that this kind of database supports, by name.

    The rule `some` accepts values of `column` up to `largest`.
    """
    both = {
        "table missing": Rule([f"ALTER TABLE {table} RENAME TO gone"], [f"ALTER TABLE gone RENAME TO {table}"]),
        "column missing": Rule(
            [f"ALTER TABLE {table} RENAME COLUMN {column} TO gone"], [f"ALTER TABLE {table} RENAME COLUMN gone TO {column}"]
        ),
    }
    is_sqlite = dialect == "sqlite"
    return both | (_sqlite_rules(table, column, largest) if is_sqlite else _postgresql_rules(table, column, largest, too_narrow))


def _sqlite_rules(table: str, column: str, largest: int) -> dict[str, Rule]:
    def trigger(action: str, when: str = "") -> Rule:
        return Rule([f"CREATE TRIGGER no BEFORE INSERT ON {table} {when} BEGIN {action}; END"], ["DROP TRIGGER no"])

    refuse = "SELECT RAISE(ABORT, 'no')"
    return {
        "wrong CHECK": Rule(
            [
                "PRAGMA writable_schema=ON",
                f"UPDATE sqlite_schema SET sql = replace(sql, ' BIGINT NOT NULL', ' BIGINT NOT NULL CHECK ({column} < 0)')"
                f" WHERE name = '{table}'",
                *_SCHEMA_READ_AGAIN,
            ],
            [
                "PRAGMA writable_schema=ON",
                f"UPDATE sqlite_schema SET sql = replace(sql, ' CHECK ({column} < 0)', '') WHERE name = '{table}'",
                *_SCHEMA_READ_AGAIN,
            ],
        ),
        "raising trigger": trigger(refuse),
        "trigger that drops the row": trigger("SELECT RAISE(IGNORE)"),
        "trigger that is broken itself": trigger("INSERT INTO nowhere VALUES (1)"),
        "some: raising trigger": trigger(refuse, f"WHEN NEW.{column} > {largest}"),
        "some: trigger that drops the row": trigger("SELECT RAISE(IGNORE)", f"WHEN NEW.{column} > {largest}"),
    }


def _postgresql_rules(table: str, column: str, largest: int, too_narrow: str) -> dict[str, Rule]:
    def check(condition: str) -> Rule:
        return Rule(
            [f"ALTER TABLE {table} ADD CONSTRAINT no CHECK ({condition}) NOT VALID"], [f"ALTER TABLE {table} DROP CONSTRAINT no"]
        )

    def trigger(action: str, kind: str = "BEFORE INSERT", constraint: str = "") -> Rule:
        body = f"CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {action}; RETURN NEW; END $$"
        made = f"CREATE {constraint} TRIGGER no {kind} ON {table}"
        deferred = " DEFERRABLE INITIALLY DEFERRED" if constraint else ""
        return Rule(
            [body, f"{made}{deferred} FOR EACH ROW EXECUTE FUNCTION no()"], [f"DROP TRIGGER no ON {table}", "DROP FUNCTION no()"]
        )

    def security(condition: str) -> Rule:
        return Rule(
            [f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY", f"CREATE POLICY no_0 ON {table} FOR SELECT USING (true)",
             f"CREATE POLICY no ON {table} FOR INSERT WITH CHECK ({condition})"],
            [f"DROP POLICY no ON {table}", f"DROP POLICY no_0 ON {table}", f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"],
        )  # fmt: skip

    return {
        "wrong CHECK": check(f"{column} < 0"),
        "raising trigger": trigger("RAISE EXCEPTION 'no'"),
        "trigger that raises a code of its own": trigger("RAISE EXCEPTION 'no' USING ERRCODE = 'ZZ001'"),
        "deferred trigger that raises": trigger("RAISE EXCEPTION 'no'", "AFTER INSERT", "CONSTRAINT"),
        "trigger that drops the row": trigger("RETURN NULL"),
        "trigger that is broken itself": trigger("PERFORM nobody_knows_this()"),
        "missing grant": Rule([f"REVOKE INSERT ON {table} FROM {_ROLE}"], [f"GRANT INSERT ON {table} TO {_ROLE}"]),
        "row-level security": security("false"),
        "column too narrow": Rule([too_narrow.format("varchar(1)")], [too_narrow.format("varchar(100)")]),
        "some: CHECK": check(f"{column} <= {largest}"),
        "some: raising trigger": trigger(f"IF NEW.{column} > {largest} THEN RAISE EXCEPTION 'no'; END IF"),
        "some: row-level security": security(f"{column} <= {largest}"),
        "some: trigger that drops the row": trigger(f"IF NEW.{column} > {largest} THEN RETURN NULL; END IF"),
    }  # fmt: skip


NAMES = sorted({name for dialect in ("sqlite", "postgresql") for name in rules(dialect, "t", "c", 0, too_narrow="")})
"""The names of all rules. A kind of database has some of them."""


def rule_of(engine: Engine, name: str, table: str, column: str, largest: int, *, too_narrow: str) -> Rule:
    """Returns one of the `rules`. Skips the test if this kind of database does not support it."""
    known = rules(engine.dialect.name, table, column, largest, too_narrow=too_narrow)
    if name not in known:
        pytest.skip(f"{engine.dialect.name} has no such rule: {name}")
    return known[name]


def service_url(url: str) -> str:
    """Creates an account that does not own the tables, and returns its URL. Returns a SQLite URL unchanged."""
    if not url.startswith("postgresql"):
        return url
    owner = create_engine(url)
    name = owner.url.database
    _execute(
        owner,
        [
            f"DO $$ BEGIN CREATE ROLE {_ROLE} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
            f"GRANT ALL ON DATABASE {name} TO {_ROLE}",
            f"GRANT ALL ON SCHEMA public TO {_ROLE}",
            f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {_ROLE}",
            f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {_ROLE}",
        ],
    )
    owner.dispose()
    return owner.url.set(username=_ROLE).render_as_string(hide_password=False)


def _execute(engine: Engine, statements: Sequence[str]) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
