"""The scenes of the guided tour, a module for each page, and the one table of their order.

A scene is a function of the tour: it does something by mouse and keyboard, checks what is seen against the engine, and
ends each of its steps with a picture.
"""

from gatewright_gui.app.scenes import agents, audit, console, files, memory, overview, policy, preview, servers, window

LIGHT = (
    window.open_window,
    overview.home,
    agents.boxes,
    preview.preview,
    agents.limit,
    agents.matrix,
    files.files,
    overview.rules,
    memory.memory,
    console.console,
    console.built_in,
    console.live,
    audit.audit,
    servers.servers,
    policy.policy,
)
DARK = (
    window.dark,
    overview.home,
    preview.preview,
    agents.matrix,
    files.files,
    overview.rules,
    memory.memory,
    console.console,
    console.built_in,
    audit.audit,
    servers.servers,
    policy.policy,
    policy.save,
)
SCENES = LIGHT + DARK
