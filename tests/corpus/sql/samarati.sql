SELECT c12, k_anonymity(c0), k_anonymity(c0) FILTER (WHERE c0), share_at_risk(0.2, c1, c2) FROM t GROUP BY c12 ORDER BY c12
