"""The steps of the tour in their order, in parts that can be made by themselves. It drives nothing itself."""

from collections.abc import Callable, Collection, Mapping

from gatewright_gui.app.touring import (
    agent_steps,
    call_steps,
    console_steps,
    file_steps,
    filter_steps,
    level_steps,
    limit_steps,
    matrix_steps,
    palette_steps,
    policy_steps,
    preview_steps,
    rights_steps,
    schema_steps,
)
from gatewright_gui.app.touring.ground import Ground
from gatewright_gui.app.touring.report import Theme
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject, choose_subject

A_POINT_OF_THE_RAIL = (4, 400)
Step = Callable[[Scene, Subject], None]
SubjectSteps = tuple[Step, ...]

BOXES: SubjectSteps = (
    agent_steps.choose_agent,
    agent_steps.open_tool,
    agent_steps.preview_before,
    agent_steps.untick,
    agent_steps.preview_after,
    agent_steps.usage_rules,
    agent_steps.difference,
    preview_steps.last_save,
    agent_steps.formats,
    preview_steps.folding,
    preview_steps.finding,
    agent_steps.ask_first,
    agent_steps.why,
    agent_steps.why_line,
    agent_steps.search,
    agent_steps.click_mixed,
    agent_steps.undo_redo,
    agent_steps.reset,
)
PROVIDERS: SubjectSteps = (schema_steps.provider_notes, schema_steps.tokens, schema_steps.declare)
BULK: SubjectSteps = (
    filter_steps.filters,
    matrix_steps.matrix,
    matrix_steps.open_row,
    matrix_steps.keys_on_cells,
    matrix_steps.differing,
    matrix_steps.leave,
    rights_steps.preset,
    rights_steps.copy_rights,
)
LIMITS: SubjectSteps = (
    limit_steps.calls,
    limit_steps.rate,
    limit_steps.constraint,
    limit_steps.capability,
    limit_steps.approval,
)


def make(scene: Scene, ground: Ground, only: Collection[str] | None) -> None:
    """All parts in their order, or only those that are named; the window comes up first in any case."""
    agent_steps.open_window(scene)
    subject = choose_subject(scene.document)
    parts = parts_of(scene, ground, subject)
    for name, part in parts.items():
        if only is None or name in only:
            part()


def parts_of(scene: Scene, ground: Ground, subject: Subject | None) -> Mapping[str, Callable[[], None]]:
    """Name of a part -> what makes it."""

    def each(steps: SubjectSteps) -> Callable[[], None]:
        def run() -> None:
            if subject is not None:
                for step in steps:
                    step(scene, subject)

        return run

    return {
        "none": lambda: _without_subject(scene, subject),
        "boxes": each(BOXES),
        "providers": each(PROVIDERS),
        "bulk": each(BULK),
        "limits": each(LIMITS),
        "layers": lambda: agent_steps.other_layer(scene),
        "window": lambda: _window(scene),
        "files": lambda: _files(scene),
        "console": lambda: _console(scene, subject),
        "policy": lambda: _policy(scene),
        "dark": lambda: _in_the_dark(scene, subject),
        "end": lambda: _end(scene, ground),
    }


def _without_subject(scene: Scene, subject: Subject | None) -> None:
    if subject is None:
        agent_steps.show_again(scene, None, "schema", "agents")


def _window(scene: Scene) -> None:
    palette_steps.selfcheck(scene)
    palette_steps.palette(scene)


def _files(scene: Scene) -> None:
    file_steps.show_files(scene)
    file_steps.change_level(scene)
    level_steps.move_rule(scene)
    level_steps.type_pattern(scene)
    level_steps.legend(scene)
    level_steps.rule_and_file(scene)
    file_steps.deciding_rule(scene)
    file_steps.try_path(scene)


def _console(scene: Scene, subject: Subject | None) -> None:
    if subject is not None:
        console_steps.denied_call(scene, subject)
        console_steps.rule_of_denied(scene)
        console_steps.allowed_call(scene, subject)
        console_steps.asking_call(scene, subject, allow=False, name="call-refused")
        console_steps.standing_approval(scene, subject, "approval-standing")
        call_steps.nested_form(scene, subject)
        call_steps.json_fault(scene, subject)
        call_steps.result_tree(scene, subject)
        call_steps.result_diff(scene, subject)
        call_steps.rule_of_level(scene, subject)
        call_steps.again(scene, subject)
    call_steps.live(scene)


def _policy(scene: Scene) -> None:
    policy_steps.show_text(scene)
    policy_steps.show_difference(scene)
    policy_steps.undo_everything(scene)
    policy_steps.show_problems(scene)


def _end(scene: Scene, ground: Ground) -> None:
    policy_steps.export(scene)
    policy_steps.untouched(scene, ground.watched)


def _switch_theme(scene: Scene, wanted: Theme) -> None:
    with scene.step(f"to-{wanted}", "problems") as step:
        scene.driver.click("top.theme")
        scene.settle()
        step.equal("the theme is the other one", scene.theme, wanted)
        lightness = scene.window.grab().toImage().pixelColor(*A_POINT_OF_THE_RAIL).lightness()
        step.equal(f"the window is {wanted}", "light" if lightness > 128 else "dark", wanted)


def _in_the_dark(scene: Scene, subject: Subject | None) -> None:
    """The pages once more, in the other theme, and back."""
    _switch_theme(scene, "dark")
    for part, name in (("schema", "agents"), ("rules", "usage-rules"), ("difference", "difference")):
        agent_steps.show_again(scene, subject, part, name)
    if subject is not None:
        _agents_in_the_dark(scene, subject)
    palette_steps.selfcheck(scene)
    palette_steps.palette(scene)
    file_steps.show_files(scene)
    level_steps.type_pattern(scene)
    level_steps.legend(scene)
    file_steps.deciding_rule(scene)
    if subject is not None:
        call_steps.nested_form(scene, subject)
        call_steps.json_fault(scene, subject)
        call_steps.result_tree(scene, subject)
        call_steps.result_diff(scene, subject)
        console_steps.asking_call(scene, subject, allow=True, name="call-approved")
        console_steps.standing_approval(scene, subject, "approval-standing")
        console_steps.show_again(scene)
    call_steps.live(scene)
    policy_steps.show_text(scene)
    policy_steps.show_difference(scene)
    policy_steps.show_problems(scene)
    _switch_theme(scene, "light")


def _agents_in_the_dark(scene: Scene, subject: Subject) -> None:
    for step in (
        *PROVIDERS,
        preview_steps.folding,
        preview_steps.finding,
        filter_steps.show_again,
        matrix_steps.show_again,
        rights_steps.show_again,
        limit_steps.show_again,
    ):
        step(scene, subject)
