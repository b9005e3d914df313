"""The stages of a call, grouped by idea; a stage takes a state and returns its objections."""
