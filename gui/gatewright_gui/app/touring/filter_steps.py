"""The steps on filters over the tree: by tier, by origin, by problem; chips take them away. By mouse and keyboard."""

from collections.abc import Callable

from gatewright.policy.right import OperationRight, ToolRight
from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.report import Step
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject
from gatewright_gui.models.toolproblems import tools_with_problems
from gatewright_gui.models.tooltree import TIER_WORDS

Fits = Callable[[ToolRight, OperationRight], bool]


def filters(scene: Scene, subject: Subject) -> None:
    """Each kind by itself, then two at once, then none."""
    rights = scene.document.rights(subject.agent_id)
    tier = rights[subject.tool].facts.tier
    origin = next((r.facts.origin for r in rights.values() if r.facts.origin != "built-in"), None)
    _open_menu(scene, subject, TIER_WORDS[tier].capitalize(), "agents.filter.tiers")
    with scene.step("filter-tier", "agents") as step:
        _compare(scene, subject, step, lambda _, op: op.tier is tier)
        step.check("no menu is left open", not scene.driver.popups())
    with scene.step("filter-origin", "agents") as step:
        if origin is None:
            step.not_here("every tool is built in")
        else:
            ways.menu(scene, "agents.filter", origin)
            _compare(scene, subject, step, lambda right, op: op.tier is tier and right.facts.origin == origin)
            scene.driver.click("agents.filter.origins")
        scene.driver.click("agents.filter.tiers")
        _compare(scene, subject, step, lambda _, __: True)
        step.check("without filters there are no chips", not scene.driver.has("agents.filter.clear"))
    with scene.step("filter-problem", "agents") as step:
        ways.menu(scene, "agents.filter", "Has a problem")
        named = tools_with_problems(scene.document.problems, subject.agent_id, rights)
        _compare(scene, subject, step, lambda right, _: right.facts.name in named)
        scene.driver.click("agents.filter.clear")
        _compare(scene, subject, step, lambda _, __: True)


def show_again(scene: Scene, subject: Subject) -> None:
    """The menu of filters in the theme that is on."""
    _open_menu(scene, subject, "On", "agents.filter.states")
    scene.driver.click("agents.filter.clear")


def _open_menu(scene: Scene, subject: Subject, word: str, chip: str) -> None:
    scene.go_to("agents")
    ways.choose_agent(scene, subject.agent_id)

    def tick() -> None:
        with scene.step("filter-menu", "agents") as step:
            ways.take(scene, word)
            step.check("the menu stays open for another tick", bool(scene.driver.popups()))
            step.check("a chip says which filter is set", scene.driver.has(chip))

    ways.with_menu(scene, "agents.filter", tick)


def _compare(scene: Scene, subject: Subject, step: Step, fits: Fits) -> None:
    scene.settle()
    wanted: dict[str, list[str]] = {}
    for tool, right in scene.document.rights(subject.agent_id).items():
        operations = [op.operation for op in right.operations if fits(right, op)]
        if operations:
            wanted[tool] = [name for name in operations if name]
    scene.driver.holds_soon(lambda: ways.shown_rows(scene) == wanted, 2.0)
    step.equal("the rows left are those that the engine knows as such", ways.shown_rows(scene), wanted)
