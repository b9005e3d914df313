"""Qt item models over values of the engine. They change nothing: a change is a verb that was given to them."""
