SELECT generalize_floor(c12, c4), generalize_date('zqxj', NULL), share_at_risk(c11, c11), k_anonymity() FROM t
