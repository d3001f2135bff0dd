-- Queries of every form, each behind its name.

-- everything
SELECT * FROM orders;

-- computed
SELECT id, v * 2 AS twice, upper(g) AS big FROM orders WHERE v > 0 AND g IS NOT NULL;

-- kinds
SELECT DISTINCT kind FROM events;

-- by_group
SELECT g, count(*) AS n, sum(v) AS s, max(at) AS latest FROM orders WHERE v > -2 GROUP BY g;

-- by_expression
SELECT CASE WHEN v > 0 THEN 'plus' ELSE 'rest' END AS sign, avg(m) + 1 AS mean
FROM orders
GROUP BY 1;

-- many
SELECT g, k FROM orders GROUP BY g, k HAVING count(*) > 1 AND sum(v) IS NOT NULL;

-- unseen_key
SELECT count(*) AS n FROM orders GROUP BY g;

-- total
SELECT count(*) AS n, sum(v) AS s, min(g) AS least FROM orders WHERE v > 1;

-- pairs
SELECT o.id, p.pid, o.v + p.n AS both FROM orders o JOIN people p ON o.k = p.k AND o.v >= p.n;

-- by_comma
SELECT o.id, p.w FROM orders o, people p WHERE o.k = p.k AND p.w <> '' AND o.v > 0;

-- using
SELECT k, w FROM orders LEFT JOIN people USING (k);

-- three
SELECT o.id, p.pid, e.eid
FROM orders o
JOIN people p ON o.k = p.k
JOIN events e ON e.id = o.id
WHERE e.kind = 'buy' OR p.n = 1;

-- lefts
SELECT o.id, p.pid, coalesce(p.w, 'none') AS w
FROM orders o
LEFT JOIN people p ON o.k = p.k AND p.n > 0 AND o.v > 0;

-- filtered_left
SELECT o.id, p.pid
FROM (SELECT *
FROM orders
WHERE v > 0) o
LEFT JOIN (SELECT pid, k, 1 AS one
FROM people) p ON o.k = p.k;

-- ones
SELECT o.id, p.one
FROM orders o
LEFT JOIN (SELECT k, 1 AS one
FROM people
WHERE n = 1) p ON o.k = p.k;

-- rights
SELECT o.id, p.pid FROM orders o RIGHT JOIN people p ON o.k = p.k WHERE o.v > 0 OR o.v IS NULL;

-- fulls
SELECT o.id, p.pid FROM orders o FULL JOIN people p ON o.k = p.k WHERE p.n = 1 OR o.v = 1;

-- not_bought
SELECT o.id FROM orders o LEFT JOIN events e ON e.id = o.id WHERE e.eid IS NULL;

-- semis
SELECT o.id, o.g FROM orders o LEFT SEMI JOIN people p ON o.k = p.k AND p.n > 0;

-- existing
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM events e WHERE e.id = o.id AND e.x > o.v);

-- not_existing
SELECT id, v
FROM orders o
WHERE v > 0 AND NOT EXISTS (SELECT *
FROM events e
WHERE e.id = o.id AND e.kind = 'buy');

-- among
SELECT id FROM orders WHERE k IN (SELECT k FROM people WHERE n > 0);

-- among_groups
SELECT id FROM orders WHERE k IN (SELECT k FROM people GROUP BY k HAVING count(*) > 1);

-- not_among
SELECT id FROM orders WHERE k NOT IN (SELECT k FROM people WHERE n = 2);

-- if_any
SELECT pid FROM people WHERE EXISTS (SELECT 1 FROM events WHERE x > 1);

-- above_mean
SELECT id FROM orders WHERE v > (SELECT avg(v) FROM orders);

-- most_of_group
SELECT o.id, o.v FROM orders o WHERE o.v = (SELECT max(i.v) FROM orders i WHERE i.g = o.g);

-- counted
SELECT p.pid, (SELECT count(*)
FROM orders o
WHERE o.k = p.k) AS n, (SELECT sum(v)
FROM orders o
WHERE o.k = p.k) AS s
FROM people p;

-- all_rows
SELECT id AS i, g AS name FROM orders UNION ALL SELECT pid, w FROM people WHERE n > 0;

-- each_once
SELECT k FROM orders UNION SELECT k FROM people;

-- in_both
SELECT k FROM orders INTERSECT SELECT k FROM people;

-- in_one
SELECT k FROM people EXCEPT SELECT k FROM orders WHERE v > 0;

-- firsts
SELECT g, id, r, r AS again
FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r
FROM orders)
WHERE r <= 2;

-- seconds
SELECT id
FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY v) AS r
FROM orders
WHERE v IS NOT NULL) q
WHERE r BETWEEN 2 AND 3;

-- best
SELECT id, v FROM orders QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC, id) = 1;

-- top
SELECT id, v FROM orders ORDER BY v DESC, id LIMIT 3;

-- top_groups
SELECT g, sum(v) AS s
FROM orders
WHERE g IS NOT NULL
GROUP BY g ORDER BY sum(v) DESC, g LIMIT 2;

-- steps
SELECT id, v - lag(v) OVER (PARTITION BY g ORDER BY id) AS step, sum(v) OVER (PARTITION BY g) AS whole
FROM orders;

-- known
SELECT id, lag(v) IGNORE NULLS OVER (PARTITION BY g ORDER BY id) AS before,
  last_value(v) IGNORE NULLS OVER (PARTITION BY g ORDER BY id ROWS UNBOUNDED PRECEDING) AS last,
  last_value(v, true) OVER (PARTITION BY g ORDER BY id ROWS UNBOUNDED PRECEDING) AS also_last,
  first(v, false) OVER (PARTITION BY g ORDER BY id) AS first,
  count_if(v > 0) OVER (PARTITION BY g) AS above
FROM orders;

-- near
SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS s
FROM orders;

-- shares
SELECT g, sum(v) AS s, rank() OVER (ORDER BY sum(v) DESC) AS r FROM orders GROUP BY g;

-- running
SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s
FROM orders
WHERE v IS NOT NULL;

-- chained
WITH sums AS (SELECT k, sum(v) AS s
FROM orders
GROUP BY k), named AS (SELECT p.w, s.s
FROM sums s
JOIN people p ON p.k = s.k) SELECT w, max(s) AS most, count(*) AS n
FROM named
GROUP BY w;

-- shared
WITH q AS (SELECT k, count(*) AS n
FROM orders
GROUP BY k) SELECT a.k, b.n
FROM q a
JOIN q b ON a.n = b.k;

-- averages
SELECT w, avg(n) AS m
FROM (SELECT p.w, o.g, count(*) AS n
FROM people p
JOIN orders o ON o.k = p.k
GROUP BY p.w, o.g) x
GROUP BY w;

-- distinct_counts
SELECT k, count(DISTINCT g) AS n, count(g) FILTER (WHERE v > 0) AS positive
FROM orders
GROUP BY k;

-- itself
SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.k = b.k AND a.id < b.id;

-- late
SELECT e.eid FROM events e JOIN orders o ON e.id = o.id WHERE to_date(o.at) <= e.d;

-- groups_of_join
SELECT p.w, sum(o.m) AS m
FROM orders o
JOIN people p ON o.k = p.k
WHERE o.g = 'a'
GROUP BY p.w
HAVING sum(o.m) > 0;

-- rolled_up
SELECT g, k, sum(v) AS s, grouping(k) AS is_sum FROM orders GROUP BY ROLLUP (g, k);

-- by_all
SELECT g, k AS l, count(*) AS n, max(v) - min(v) AS wide FROM orders GROUP BY ALL;

-- in_sets
SELECT g, k, count(*) AS n FROM orders GROUP BY GROUPING SETS ((g), (k), ());

-- cubed
SELECT upper(g) AS big, k, max(v) FROM orders GROUP BY CUBE (upper(g), k);

-- null_rows
SELECT o.id, p.pid, e.eid FROM orders o JOIN people p ON o.k = p.k FULL JOIN events e ON e.id = o.id
WHERE o.v > 0;

-- null_rows_of_two
SELECT o.id, e.eid FROM orders o RIGHT JOIN people p ON o.k = p.k AND o.v > 0 JOIN events e
ON e.id = p.pid AND coalesce(o.g, 'a') <> 'b' LEFT JOIN orders x ON x.id = e.eid WHERE x.v IS NULL;

-- unnamed
SELECT `G`, COUNT(*), sum(V) / 2 FROM Orders GROUP BY G;

-- letters
SELECT o.id, e, i FROM orders o LATERAL VIEW posexplode(split(concat(coalesce(g, ''), 'xy'), '')) t AS i, e WHERE e <> 'y';

-- letters_or_none
SELECT o.id, t.e FROM orders o LATERAL VIEW OUTER explode(split(g, '')) t AS e;

-- letters_of_pairs
SELECT o.id, p.w, e FROM orders o JOIN people p ON o.k = p.k LATERAL VIEW explode(split(concat(p.w, 'z'), '')) t AS e
WHERE e <> 'x' AND o.v > -2;

-- letters_counted
SELECT e, count(*) AS n FROM (SELECT explode(split(concat(g, 'q'), '')) AS e FROM orders) GROUP BY e;

-- letters_beside
SELECT o.id, e FROM orders o, LATERAL explode(split(concat(g, 'q'), '')) AS t(e) JOIN people p ON p.pid = o.id;

-- entries
SELECT id, key, value FROM orders LATERAL VIEW explode(map('v', v, 'k', k)) t AS key, value WHERE value > 0;

-- named_values
SELECT o.id, n.name FROM orders o JOIN (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) AS n(k, name) ON o.k = n.k;

-- values_first
SELECT o.id, n.name FROM VALUES (1, 'one'), (2, 'two') AS n(k, name) JOIN orders o ON o.k = n.k AND o.v > 0;

-- values_left
SELECT n.k, n.name, count(o.id) AS n FROM VALUES (1, 'one'), (9, 'nine') AS n(k, name) LEFT JOIN orders o ON o.k = n.k GROUP BY n.k, n.name;

-- values_crossed
SELECT o.id, f.f * o.v AS scaled FROM orders o CROSS JOIN (VALUES (1), (10)) AS f(f) WHERE o.v <> 0;

-- values_and_rows
SELECT k FROM orders UNION ALL VALUES (7), (8);

-- threshold
WITH p AS (SELECT 1 AS low, 2 AS high) SELECT o.id, p.high FROM orders o CROSS JOIN p WHERE o.v >= p.low AND o.k < p.high;

-- beside_the_mean
SELECT o.id, o.v - s.mean AS off FROM orders o CROSS JOIN (SELECT avg(v) AS mean FROM orders) s WHERE o.v < s.mean;

-- one_and_all
SELECT s.n, o.id FROM (SELECT count(*) AS n FROM events) s JOIN orders o ON o.v < s.n;

-- exists_or
SELECT id FROM orders o WHERE v > 2 OR EXISTS (SELECT 1 FROM events e WHERE e.id = o.id AND e.kind = 'buy');

-- not_exists_or
SELECT id FROM orders o WHERE v > 2 OR NOT EXISTS (SELECT 1 FROM events e WHERE e.id = o.id);

-- in_or
SELECT id FROM orders o WHERE k IN (SELECT k FROM people WHERE n = 1) OR v = 0;

-- not_in_or
SELECT id FROM orders o WHERE k NOT IN (SELECT k FROM people WHERE n = 1) OR v = 0;

-- in_shown
SELECT id, k IN (SELECT k FROM people) AS known, EXISTS (SELECT 1 FROM events e WHERE e.id = o.id) AS seen FROM orders o;

-- in_case
SELECT id, CASE WHEN v IN (SELECT n FROM people p WHERE p.k = o.k) THEN 'some' ELSE 'none' END AS c FROM orders o;

-- both_all
SELECT k, g FROM orders INTERSECT ALL SELECT k, w FROM people;

-- more_all
SELECT k FROM orders EXCEPT ALL SELECT k FROM people;

-- latest_of_all
SELECT id, (SELECT w FROM people ORDER BY pid DESC LIMIT 1) AS newest FROM orders WHERE v > 0;

-- nested_joins
SELECT o.id, p.pid, e.eid FROM orders o LEFT JOIN (people p JOIN events e ON p.pid = e.id) ON o.id = p.pid;

-- without_from
SELECT id, (SELECT 5) AS five FROM orders WHERE v = (SELECT 1);

-- not_of_both
SELECT id, NOT (v > 1 AND k IN (SELECT k FROM people)) AS a, NOT (k IN (SELECT n FROM people)) AS b FROM orders
WHERE NOT (v = 2 OR k NOT IN (SELECT k FROM people WHERE n > 0) OR v IS NULL);

-- not_of_a_condition_and_a_scalar
SELECT id FROM orders o WHERE NOT (id <= (SELECT max(n) FROM people p WHERE p.k = o.k) AND v > 0);

-- pair_in
SELECT id FROM orders WHERE (k, v) IN (SELECT k, n FROM people);

-- pair_in_list
SELECT id FROM orders WHERE (k, v) IN ((1, 2), (2, 0)) OR (k, g) NOT IN ((3, 'a'));

-- not_in_tied
SELECT id FROM orders o WHERE v NOT IN (SELECT n FROM people p WHERE p.k = o.k);

-- only_one
SELECT e.eid, (SELECT g FROM orders o WHERE o.id = e.id) AS g FROM events e;

-- only_one_of_all
SELECT id, (SELECT w FROM people WHERE pid = 3) AS third FROM orders WHERE v > 0;

-- grouped_scalar
SELECT id, (SELECT count(*) FROM people p WHERE p.k = o.k GROUP BY p.k) AS n FROM orders o;

-- having_in
SELECT k, sum(v) AS s FROM orders GROUP BY k HAVING k IN (SELECT k FROM people WHERE n > 0);

-- name_of_group
SELECT id, count(*) AS n, (SELECT max(g) FROM orders o WHERE o.id = e.id) AS g FROM events e GROUP BY id;

-- in_groups_shown
SELECT id, CASE WHEN id IN (SELECT id FROM events GROUP BY id HAVING count(*) > 1) THEN 1 ELSE 0 END AS f FROM orders;

-- distinct_sum
SELECT g, sum(DISTINCT v) AS s, avg(DISTINCT v) AS m, count(*) AS n, count(DISTINCT v) AS c, min(k) AS low FROM orders GROUP BY g;

-- distinct_sum_of_all
SELECT sum(DISTINCT v) AS s, count(k) AS n FROM orders WHERE g = 'a';

-- distinct_pairs
SELECT g, count(DISTINCT k, v) AS n FROM orders GROUP BY g;

-- counted_if
SELECT g, count_if(v > 0) AS n FROM orders GROUP BY g;

-- sorted_list
SELECT g, sort_array(collect_list(v)) AS l FROM orders GROUP BY g;

-- distinct_from
SELECT id FROM orders WHERE v IS DISTINCT FROM k;

-- days
SELECT eid, timestampdiff(DAY, o.at, d) AS days, dateadd(DAY, 1, d) AS later FROM events e JOIN orders o ON e.id = o.id;

-- named_window_of_names
SELECT id, lag(v) OVER w AS before, sum(v) OVER w AS total FROM orders WINDOW w AS (PARTITION BY k ORDER BY id);

-- sets_numbered
SELECT g, k, grouping_id(g, k) AS level, count(*) AS n FROM orders GROUP BY CUBE (g, k);

-- alias_like_ours
SELECT s0.id, (SELECT max(n) FROM people s1 WHERE s1.k = s0.k) AS m FROM orders s0;

-- scalar_tied_by_more
SELECT id, (SELECT count(*) FROM people p WHERE p.k = o.k AND p.n < o.v) AS n, (SELECT max(x) FROM events e WHERE e.id = o.id AND e.eid <> o.k + 1) AS m
FROM orders o WHERE v > -2;

-- exists_tied_by_more
SELECT id, EXISTS (SELECT 1 FROM people p WHERE p.k = o.k AND p.n <= o.v) AS f FROM orders o WHERE v = 2 OR NOT EXISTS (SELECT 1 FROM events e WHERE e.id = o.id AND e.eid > o.k);

-- hinted
SELECT /*+ BROADCAST(p) */ o.id, p.pid FROM orders o JOIN people p ON o.k = p.k;

-- of_pairs
SELECT g, CAST(corr(v, id) AS DECIMAL(20, 6)) AS r, CAST(covar_pop(v, id) AS DECIMAL(20, 6)) AS c, CAST(covar_samp(v, id) AS DECIMAL(20, 6)) AS s,
  CAST(regr_slope(v, id) AS DECIMAL(20, 6)) AS slope, CAST(regr_intercept(v, id) AS DECIMAL(20, 6)) AS start, regr_count(v, k) AS n,
  CAST(covar_pop(v, id) FILTER (WHERE k > 1) AS DECIMAL(20, 6)) AS some, CAST(regr_r2(v, id) AS DECIMAL(20, 6)) AS fit
FROM orders GROUP BY g HAVING count(DISTINCT v) > 1;

-- of_one_pair
SELECT id, covar_samp(v, k) AS c, covar_pop(v, k) AS p, regr_count(v, k) AS n, regr_slope(v, k) AS s FROM orders GROUP BY id;

-- shapes
SELECT g, CAST(skewness(v) AS DECIMAL(20, 6)) AS s, CAST(kurtosis(v) AS DECIMAL(20, 6)) AS k FROM orders GROUP BY g;

-- listed_texts
SELECT k, listagg(g, ',') WITHIN GROUP (ORDER BY g DESC) AS a, string_agg(g, '-') WITHIN GROUP (ORDER BY id) AS b
FROM orders GROUP BY k;

-- listed_once
SELECT k, listagg(DISTINCT g, '-') WITHIN GROUP (ORDER BY g) AS c FROM orders GROUP BY k;

-- bits
SELECT g, bit_or(v) AS o, bit_and(v) AS a, bit_or(k) FILTER (WHERE v > 1) AS f FROM orders GROUP BY g;

-- in_group
SELECT g, percentile_cont(0.25) WITHIN GROUP (ORDER BY v) AS p, mode() WITHIN GROUP (ORDER BY k) AS m FROM orders GROUP BY g;

-- like_any
SELECT id FROM orders WHERE g LIKE ANY ('a%', 'b%') AND (g NOT LIKE ALL ('a', 'x%') OR g NOT LIKE ANY ('a%', 'b%'));

-- distinct_days
SELECT eid, timestampdiff(DAY, o.at, d) IS DISTINCT FROM 1 AS f FROM events e JOIN orders o ON e.id = o.id;

-- distinct_sums_of_several
SELECT g, sum(DISTINCT v) AS a, avg(DISTINCT k) AS b, sum(k) AS c, sum(DISTINCT m) FILTER (WHERE v > 0) AS d, count(DISTINCT k) AS e
FROM orders GROUP BY g HAVING sum(DISTINCT v) IS NOT NULL OR g IS NULL;

-- distinct_sums_of_all
SELECT sum(DISTINCT v) AS a, sum(DISTINCT k) AS b, sum(v) AS c FROM orders WHERE id > 6;

-- distinct_sums_in_sets
SELECT g, k, sum(DISTINCT v) AS s, sum(v) AS t FROM orders GROUP BY ROLLUP (g, k);

-- exists_of_groups
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM people p WHERE p.k = o.k GROUP BY p.w HAVING count(*) > 1)
  OR v IN (SELECT n FROM people p WHERE p.k = o.k GROUP BY n HAVING count(*) > 1);

-- exists_of_groups_alone
SELECT id FROM orders o WHERE EXISTS (SELECT p.w FROM people p WHERE p.k = o.k GROUP BY p.w HAVING count(*) > 1);

-- not_in_groups
SELECT id FROM orders o WHERE v NOT IN (SELECT n FROM people p WHERE p.k = o.k GROUP BY n HAVING count(*) > 1);

-- exists_of_all
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM people p WHERE p.k = o.k HAVING count(*) < 2)
  AND NOT EXISTS (SELECT 1 FROM people p WHERE p.k = o.k HAVING sum(n) > 2);

-- in_an_aggregate
SELECT id FROM orders o WHERE v IN (SELECT max(n) FROM people p WHERE p.k = o.k) OR k NOT IN (SELECT min(n) FROM people p WHERE p.k = o.k);

-- in_distinct
SELECT id FROM orders o WHERE v IN (SELECT DISTINCT n FROM people p WHERE p.k = o.k) AND EXISTS (SELECT DISTINCT w FROM people p WHERE p.k = o.k LIMIT 1);

-- first_of_each
SELECT id, (SELECT w FROM people p WHERE p.k = o.k AND n > 0 ORDER BY n DESC, pid LIMIT 1) AS w FROM orders o
WHERE v > (SELECT n FROM people p WHERE p.k = o.k ORDER BY pid LIMIT 1);

-- lateral_rows
SELECT o.id, q.w, q.n FROM orders o LEFT JOIN LATERAL (SELECT w, n FROM people p WHERE p.k = o.k AND n > 0) q ON true;

-- lateral_first
SELECT o.id, q.pid FROM orders o, LATERAL (SELECT pid FROM people p WHERE p.k = o.k ORDER BY n DESC, pid LIMIT 2) q;

-- lateral_totals
SELECT o.id, q.n, q.s + r.d AS t FROM orders o, LATERAL (SELECT count(*) AS n, sum(n) AS s FROM people p WHERE p.k = o.k) q, LATERAL (SELECT q.s * 2 AS d) r WHERE q.n < 5;

-- lateral_groups
SELECT q.w, sum(q.n) AS n FROM orders o CROSS JOIN LATERAL (SELECT w, count(*) AS n FROM people p WHERE p.k = o.k GROUP BY w) q GROUP BY q.w;

-- not_in_several
SELECT id FROM orders WHERE (k, v) NOT IN (SELECT k, n FROM people WHERE n > 1 OR w = 'x');

-- not_in_several_of_none
SELECT id FROM orders WHERE (k, v) NOT IN (SELECT n, n FROM people WHERE n > 5);

-- any_of_the_same
SELECT id, any_value(g) AS g, first(v) + count(*) AS n FROM orders GROUP BY id;

-- exists_in_exists
SELECT pid FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.k = p.k AND EXISTS (SELECT 1 FROM events e WHERE e.id = o.id AND e.eid > p.n));

-- last_of_no_ties
SELECT id, last_value(v) OVER (PARTITION BY g ORDER BY m, id) AS l FROM orders;

-- names_by_place
SELECT id AS a, k AS b FROM orders UNION SELECT pid, cast(pid AS int) FROM people;

-- shown_again
SELECT id, k, id, k AS other, k FROM orders;

-- shown_again_of_groups
SELECT k, k, count(*) FROM orders GROUP BY k, k;

-- constants_first
SELECT n.a, count(*) AS c FROM (VALUES (1), (2)) AS n(a) CROSS JOIN orders o WHERE o.v >= n.a GROUP BY n.a;

-- constant_array
SELECT t.word, o.id FROM orders o CROSS JOIN (SELECT explode(array('x', 'y')) AS word) t WHERE t.word <> o.g;

-- function_in_from
SELECT r.n, count(p.pid) AS c FROM explode(sequence(0, 4)) AS r(n) LEFT JOIN people p ON p.n = r.n GROUP BY r.n;

-- range_in_from
SELECT r.id AS i, o.id FROM range(3, -2, -2) r JOIN orders o ON o.v < r.id;

-- range_of_one
SELECT id AS i, pid FROM people, range(2);

-- pivoted
SELECT * FROM (SELECT g, k, v FROM orders) PIVOT (sum(v) AS s, count(*) AS c FOR k IN (1 AS one, 2 AS two));

-- pivoted_by_two
SELECT w, both FROM people PIVOT (coalesce(sum(pid), 0) FOR (k, n) IN ((1, 1) AS both, (2, 0) AS other));

-- pivoted_whole
SELECT * FROM (SELECT k, v FROM orders) PIVOT (max(v) FOR k IN (1 AS one, null AS none)) WHERE one > 0;

-- values_of_lateral
SELECT o.id, q.n, q.m + 1 AS m FROM orders o, LATERAL (SELECT (SELECT count(*) FROM people p WHERE p.k = o.k) AS n, (SELECT max(x) FROM events e WHERE e.id = o.id) AS m) q;

-- query_in_aggregate
SELECT g, count(*) FILTER (WHERE v > (SELECT min(n) FROM people)) AS c, sum(v + (SELECT max(n) FROM people)) AS s, max(k) + (SELECT count(*) FROM events) AS e FROM orders GROUP BY g;

-- alias_of_two
WITH a AS (SELECT x.k, x.v FROM orders x), b AS (SELECT k, w AS word FROM people) SELECT a.v, x.word FROM a JOIN b x ON x.k = a.k;

-- in_itself
SELECT id FROM orders WHERE id IN (SELECT k FROM orders WHERE v > 0) OR g = 'b';

-- least_of_itself
SELECT pid FROM people WHERE k NOT IN (SELECT pid FROM people WHERE n > 0) AND n > (SELECT min(n) FROM people);

-- names_of_with
WITH few AS (SELECT k FROM people WHERE n > 0)
SELECT q.k AS a, few.k AS b
FROM (WITH few AS (SELECT k FROM orders WHERE v > 0) SELECT k FROM few) q
LEFT JOIN few ON q.k = few.k;

-- table_beside_with
SELECT o.id AS a, q.id AS b FROM orders o JOIN (WITH orders AS (SELECT pid AS id, k FROM people WHERE n > 0) SELECT id, k FROM orders) q ON o.k = q.k;

-- names_alike
SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM (SELECT k, n AS b__c FROM people) a JOIN (SELECT k, v AS c FROM orders) a__b ON a.k = a__b.k WHERE a.k = o.k AND a.b__c > o.v AND a__b.c < o.v);

-- pivots_of_one_name
SELECT a.g, a.one AS x, b.one AS y FROM (WITH x AS (SELECT g, k, v FROM orders) SELECT * FROM x PIVOT (sum(v) FOR k IN (1 AS one))) a LEFT JOIN (WITH x AS (SELECT w, k, n FROM people) SELECT * FROM x PIVOT (sum(n) FOR k IN (1 AS one))) b ON a.g = b.w;

-- narrowest
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM orders)
WHERE r <= 1 AND r <= 3;

-- of_both_ends
SELECT id, r FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM orders)
WHERE r > 1 AND r >= 1 AND r < 4;

-- alias_of_its_argument
SELECT g, sum(v) AS v FROM orders GROUP BY g HAVING sum(v) > 1 AND max(v) < 90;

-- alias_of_a_key
SELECT g, v + 10 AS v, count(*) FILTER (WHERE k > 1) AS k
FROM orders GROUP BY g, v HAVING max(v) > 0 AND v < 12 AND count(*) FILTER (WHERE k > 1) > 0;

-- counted_ones
SELECT g, count(1) AS n, count(1) FILTER (WHERE v > 0) AS above
FROM orders GROUP BY g;

-- among_before_a_join
SELECT o.id, p.w, e.kind
FROM people p, orders o, events e
WHERE o.k = p.k AND e.id = o.id AND o.k IN (SELECT k FROM people WHERE n > 0) AND p.n IN (SELECT v FROM orders)
  AND (o.k, o.id) IN (SELECT k, id FROM orders WHERE v > -2) AND o.k IN (SELECT k FROM people GROUP BY k HAVING count(*) > 0);

-- among_beside_an_outer_join
SELECT o.id, p.w FROM orders o LEFT JOIN people p ON p.k = o.k
WHERE o.v IN (SELECT n FROM people) AND p.k NOT IN (SELECT n FROM people WHERE n > 1);

-- among_tied_and_of_two
SELECT o.id AS a, p.pid AS b FROM orders o JOIN people p ON p.k = o.k
WHERE o.v IN (SELECT q.n FROM people q WHERE q.k = o.k) AND (p.k, o.g) IN (SELECT k, g FROM orders);

-- among_with
WITH few AS (SELECT k, n FROM people WHERE n > 0)
SELECT o.id AS a, few.n AS b, count(*) AS c FROM orders o JOIN few ON few.k = o.k
WHERE few.n IN (SELECT v FROM orders) AND o.g IN (SELECT g FROM orders WHERE v > 0) GROUP BY 1, 2;
