-- What a warehouse did, by status of its orders.
\set warehouse random(1, :warehouses)
SELECT order_status, count(*), sum(order_total) FROM orders WHERE warehouse_id = :warehouse GROUP BY order_status;
