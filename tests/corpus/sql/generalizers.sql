SELECT generalize_date(c16, 'decade'), generalize_floor(c4, 10), generalize_range(c11, 0.5), generalize_prefix(c12, 3), generalize_suppress(c0) FROM t
