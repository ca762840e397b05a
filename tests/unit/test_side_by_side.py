from tests.side_by_side import scope_of


def test_the_tests_of_a_file_stay_together() -> None:
    assert scope_of("tests/e2e/test_demo.py::test_a[1::2]") == scope_of("tests/e2e/test_demo.py::TestB::test_c")
    assert scope_of("tutorials/twice-is-once/test_twice.py::test_a") == "tutorials/twice-is-once/test_twice.py"


def test_all_chapters_stay_together() -> None:
    chapters = {scope_of(f"tutorials/{chapter}/README.md::line:{line},column:1") for chapter in ("a", "b") for line in (1, 2)}
    assert len(chapters) == 1
