-- The open orders of a warehouse.
\set warehouse random(1, :warehouses)
SELECT order_id, order_date, order_status, order_total FROM orders WHERE warehouse_id = :warehouse AND order_status <= 4 ORDER BY order_date LIMIT 100;
