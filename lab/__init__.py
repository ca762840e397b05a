"""What measures and tries the project and is imported by nothing of it: benchmarks, and simulated worlds."""
