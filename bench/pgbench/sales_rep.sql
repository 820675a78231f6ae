-- The last orders of a sales representative.
\set staff random(1, 1000)
SELECT order_id, order_date, order_total, customer_id FROM orders WHERE sales_rep_id = :staff ORDER BY order_date DESC LIMIT 50;
