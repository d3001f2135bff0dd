-- Nexmark's queries over people, auctions and bids. Windows of event time are columns; q12 asks for processing time.

-- q0
SELECT auction, bidder, price, date_time, extra FROM bid;

-- q1
SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid;

-- q2
SELECT auction, price FROM bid WHERE auction % 3 = 0;

-- q3
SELECT p.name, p.city, p.state, a.id
FROM auction AS a INNER JOIN person AS p ON a.seller = p.id
WHERE a.category = 10 AND (p.state = 'or' OR p.state = 'id' OR p.state = 'ca');

-- q4
SELECT q.category, avg(q.final) AS average
FROM (
  SELECT max(b.price) AS final, a.category
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.category
) q
GROUP BY q.category;

-- q5
WITH hops AS (
  SELECT auction, floor(unix_seconds(date_time) / 2) * 2 - 2 * n AS starts
  FROM bid LATERAL VIEW explode(sequence(0, 4)) w AS n
),
counted AS (SELECT auction, starts, count(*) AS num FROM hops GROUP BY auction, starts)
SELECT c.auction, c.num, c.starts
FROM counted c JOIN (SELECT max(num) AS most, starts FROM counted GROUP BY starts) m ON c.starts = m.starts AND c.num >= m.most;

-- q6
SELECT seller, id, avg(price) OVER (PARTITION BY seller ORDER BY date_time, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT a.seller, a.id, b.price, b.date_time
  FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
  QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.id) = 1
);

-- q7
WITH tumbled AS (SELECT *, floor(unix_seconds(date_time) / 10) AS w FROM bid)
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM tumbled b JOIN (SELECT max(price) AS most, w FROM tumbled GROUP BY w) m ON b.w = m.w AND b.price = m.most;

-- q8
SELECT p.id, p.name, p.w
FROM (SELECT id, name, floor(unix_seconds(date_time) / 10) AS w FROM person GROUP BY id, name, floor(unix_seconds(date_time) / 10)) p
JOIN (SELECT seller, floor(unix_seconds(date_time) / 10) AS w FROM auction GROUP BY seller, floor(unix_seconds(date_time) / 10)) a
ON p.id = a.seller AND p.w = a.w;

-- q9
SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, bid_id, bidder, price, bid_date_time
FROM (
  SELECT a.*, b.id AS bid_id, b.bidder, b.price, b.date_time AS bid_date_time,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC, b.id) AS rownum
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
)
WHERE rownum <= 1;

-- q12
SELECT bidder, count(*) AS bid_count, floor(unix_seconds(current_timestamp()) / 10) AS w
FROM bid GROUP BY bidder, floor(unix_seconds(current_timestamp()) / 10);

-- q13
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN (VALUES (0, 'zero'), (1, 'one'), (2, 'two')) AS s(key, value) ON b.auction % 4 = s.key;

-- q14
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime' WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time_type,
  date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000 AND 0.908 * price < 50000000;

-- q15
SELECT to_date(date_time) AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid GROUP BY to_date(date_time);

-- q16
SELECT channel, to_date(date_time) AS day, max(date_format(date_time, 'HH:mm')) AS minute, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000) AS rank2_bidders,
  count(DISTINCT auction) AS total_auctions
FROM bid GROUP BY channel, to_date(date_time);

-- q17
SELECT auction, to_date(date_time) AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, to_date(date_time);

-- q18
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, id) AS rank_number FROM bid)
WHERE rank_number <= 1;

-- q19
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, id) AS rank_number FROM bid) WHERE rank_number <= 10;

-- q20
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_date_time, a.item_name, a.description, a.initial_bid, a.reserve,
  a.date_time AS auction_date_time, a.expires, a.seller, a.category
FROM bid b INNER JOIN auction a ON b.auction = a.id
WHERE a.category = 10;
