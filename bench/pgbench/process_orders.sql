-- The oldest open order of a warehouse moves on.
\set warehouse random(1, :warehouses)
\set order 0
BEGIN;
UPDATE orders SET order_status = 5 WHERE order_id = (SELECT order_id FROM orders WHERE warehouse_id = :warehouse AND order_status <= 4 ORDER BY order_status LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING order_id AS order \aset
\if :order > 0
SELECT line_item_id, product_id, unit_price, quantity FROM order_items WHERE order_id = :order;
\endif
COMMIT;
