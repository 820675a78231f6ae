-- A customer's last orders with their items.
\set customer random(1, :customers)
SELECT first_name, last_name, credit_limit, email, preferred_address_id, preferred_card_id FROM customers WHERE customer_id = :customer;
SELECT o.order_id, o.order_date, o.order_total, i.line_item_id, i.product_id, i.unit_price, i.quantity FROM (SELECT order_id, order_date, order_total FROM orders WHERE customer_id = :customer ORDER BY order_date DESC LIMIT 5) o JOIN order_items i USING (order_id);
