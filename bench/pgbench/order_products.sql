-- An order of one to five items, products ascending so that two orders never wait for each other in a circle.
\set customer random(1, :customers)
\set warehouse random(1, :warehouses)
\set staff random(1, 1000)
\set items random(1, 5)
\set product 0
BEGIN;
SELECT first_name, last_name, credit_limit, email, preferred_address_id, preferred_card_id FROM customers WHERE customer_id = :customer;
INSERT INTO logon VALUES (nextval('logon_ids'), :customer, now());
INSERT INTO orders VALUES (nextval('order_ids'), now(), 'online', :customer, 1, 0, :staff, :warehouse, 'standard', :customer, :customer, 'ordered') RETURNING order_id AS order \gset
\if :items >= 1
\set product :product + random(1, :products / 5)
\set quantity random(1, 3)
SELECT p.list_price, i.quantity_on_hand FROM product_information p LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product;
INSERT INTO order_items SELECT :order, 1, :product, list_price, :quantity, NULL, 'none', 'new' FROM product_information WHERE product_id = :product;
UPDATE inventories SET quantity_on_hand = quantity_on_hand - :quantity WHERE product_id = :product AND warehouse_id = :warehouse;
\endif
\if :items >= 2
\set product :product + random(1, :products / 5)
\set quantity random(1, 3)
SELECT p.list_price, i.quantity_on_hand FROM product_information p LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product;
INSERT INTO order_items SELECT :order, 2, :product, list_price, :quantity, NULL, 'none', 'new' FROM product_information WHERE product_id = :product;
UPDATE inventories SET quantity_on_hand = quantity_on_hand - :quantity WHERE product_id = :product AND warehouse_id = :warehouse;
\endif
\if :items >= 3
\set product :product + random(1, :products / 5)
\set quantity random(1, 3)
SELECT p.list_price, i.quantity_on_hand FROM product_information p LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product;
INSERT INTO order_items SELECT :order, 3, :product, list_price, :quantity, NULL, 'none', 'new' FROM product_information WHERE product_id = :product;
UPDATE inventories SET quantity_on_hand = quantity_on_hand - :quantity WHERE product_id = :product AND warehouse_id = :warehouse;
\endif
\if :items >= 4
\set product :product + random(1, :products / 5)
\set quantity random(1, 3)
SELECT p.list_price, i.quantity_on_hand FROM product_information p LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product;
INSERT INTO order_items SELECT :order, 4, :product, list_price, :quantity, NULL, 'none', 'new' FROM product_information WHERE product_id = :product;
UPDATE inventories SET quantity_on_hand = quantity_on_hand - :quantity WHERE product_id = :product AND warehouse_id = :warehouse;
\endif
\if :items >= 5
\set product :product + random(1, :products / 5)
\set quantity random(1, 3)
SELECT p.list_price, i.quantity_on_hand FROM product_information p LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product;
INSERT INTO order_items SELECT :order, 5, :product, list_price, :quantity, NULL, 'none', 'new' FROM product_information WHERE product_id = :product;
UPDATE inventories SET quantity_on_hand = quantity_on_hand - :quantity WHERE product_id = :product AND warehouse_id = :warehouse;
\endif
UPDATE orders SET order_status = 2, order_total = (SELECT sum(unit_price * quantity) FROM order_items WHERE order_id = :order) WHERE order_id = :order;
COMMIT;
