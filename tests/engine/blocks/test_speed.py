from tests.engine.blocks.bench import measure


def test_replacing_and_patching_in_a_large_text_costs_little_more_than_the_library_itself() -> None:
    rows = {row.name: row for row in measure(20)}
    assert rows["replace"].factor <= 3
    assert rows["patch"].factor <= 3
    assert rows["append"].ours_s < 0.002
