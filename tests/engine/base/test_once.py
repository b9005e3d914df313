import threading

from gatewright.base.late import once


class Answers:
    def __init__(self) -> None:
        self.asked = 0
        self.working = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()

    @once
    def answer(self) -> list[str]:
        self.asked += 1
        self.working.set()
        self.goes_on.wait(10)
        return []


def test_answer_is_worked_out_once_and_kept() -> None:
    answers = Answers()

    assert answers.answer is answers.answer
    assert answers.asked == 1


def test_object_does_not_wait_for_another_one_that_is_being_worked_out() -> None:
    slow, quick = Answers(), Answers()
    slow.goes_on.clear()
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    slow.working.wait(10)

    assert quick.answer == []
    assert "answer" not in slow.__dict__
    slow.goes_on.set()
    thread.join()


def test_two_threads_that_ask_at_once_get_the_same_answer() -> None:
    answers, found = Answers(), list[list[str]]()
    answers.goes_on.clear()
    threads = [threading.Thread(target=lambda: found.append(answers.answer)) for _ in range(2)]
    for thread in threads:
        thread.start()
    answers.goes_on.set()
    for thread in threads:
        thread.join()

    assert found[0] is found[1]
    assert found[0] is answers.answer
