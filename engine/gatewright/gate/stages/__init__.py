"""The stages of a call, one module each; a stage takes a state and returns the next one with its objections."""
