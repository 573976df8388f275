"""The parts of the suite, one module each. A part gets a Rig, raises Failure to fail, and returns a line about its counts."""
