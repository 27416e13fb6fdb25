SELECT count(c33) AS left_, count(generalize_date(c33, 'year')) AS right_ FROM (SELECT * FROM t LIMIT 1 OFFSET 16)
