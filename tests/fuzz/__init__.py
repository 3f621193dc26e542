"""Programs grown at random, judged by torch and read by the checker."""
