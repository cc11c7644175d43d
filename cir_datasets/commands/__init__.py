"""`cir datasets ...`: one module a subject, each free of heavy imports."""
