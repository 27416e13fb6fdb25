SELECT k_anonymity(generalize_date(c16, 'year'), generalize_prefix(generalize_prefix(c14, 3), 1)), prosecutor_risk_max(c18) FROM t
