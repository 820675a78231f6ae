//! An engine that knows only the toy, in its own process that a test can kill: see the program `toy-engine`.
