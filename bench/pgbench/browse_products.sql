-- Products by number and by category.
\set customer random(1, :customers)
\set warehouse random(1, :warehouses)
\set category random(1, 50)
\set product1 random(1, :products)
\set product2 random(1, :products)
\set product3 random(1, :products)
SELECT first_name, last_name, credit_limit, email, preferred_address_id, preferred_card_id FROM customers WHERE customer_id = :customer;
SELECT p.product_name, p.list_price, d.translated_description, i.quantity_on_hand FROM product_information p JOIN product_descriptions d ON d.product_id = p.product_id AND d.language = 'en' LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product1;
SELECT p.product_name, p.list_price, d.translated_description, i.quantity_on_hand FROM product_information p JOIN product_descriptions d ON d.product_id = p.product_id AND d.language = 'en' LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product2;
SELECT p.product_name, p.list_price, d.translated_description, i.quantity_on_hand FROM product_information p JOIN product_descriptions d ON d.product_id = p.product_id AND d.language = 'en' LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.product_id = :product3;
SELECT p.product_id, p.product_name, p.list_price, i.quantity_on_hand FROM product_information p JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = :warehouse WHERE p.category_id = :category LIMIT 10;
