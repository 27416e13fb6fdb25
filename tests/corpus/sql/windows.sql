SELECT sample_uniqueness(c5) OVER (PARTITION BY c0), k_anonymity(c0) OVER (), expected_reidentifications(DISTINCT c1) FROM t
