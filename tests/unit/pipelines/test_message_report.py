from pipelines.judging.cut_off import CutOff
from pipelines.message_report import LoggedTransactions, MessageReport, transactions_table


def test_the_table_shows_how_many_transactions_had_each_outcome() -> None:
    counts = LoggedTransactions(transactions=1_500, delivered=1_400, doubled=3, pending=20, in_flight=30)
    table = transactions_table(MessageReport([], counts), "orders", CutOff(as_of_ms=0, grace_seconds=60))
    rows = list(zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True))
    assert rows == [
        ("all", "1,500"),
        ("delivered", "1,400"),
        ("delivered more than once", "3"),
        ("rolled back or discarded", "50"),
        ("undecided, still in flight", "30"),
        ("undecided for more than 60 s", "20"),
    ]
    assert "Transactions of topic orders" in str(table.title)
