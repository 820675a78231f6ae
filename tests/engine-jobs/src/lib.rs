//! An engine that knows the toy alone, in a process of its own that a test can kill: see the program `toy-engine`.
