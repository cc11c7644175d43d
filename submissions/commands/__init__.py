"""`cir run`, `cir validate`, `cir score` and the others: one module a command, each free of heavy imports."""
