"""How the program keeps records of its own: the one way to open what lies in a state or key folder."""
