-- A new customer with address and card.
\set staff random(1, 1000)
\set house random(1, 250)
\set number random(4000000000000000, 5999999999999999)
\set name random(1, 1000000)
BEGIN;
INSERT INTO customers VALUES (nextval('customer_ids'), 'First' || :name, 'Last' || :name, 'en', 'Austria', 1000, 'customer.' || :name || '@mail.example', :staff, now(), 'occasional', 'new customer', '1990-01-01', false, 0, 0) RETURNING customer_id AS customer \gset
INSERT INTO addresses VALUES (nextval('address_ids'), :customer, now(), :house, 'Station Road', 'Graz', 'Austria', '80100') RETURNING address_id AS address \gset
INSERT INTO card_details VALUES (nextval('card_ids'), :customer, 'debit', :number, '2030-01-01', true, 123) RETURNING card_id AS card \gset
UPDATE customers SET preferred_address_id = :address WHERE customer_id = :customer;
UPDATE customers SET preferred_card_id = :card WHERE customer_id = :customer;
INSERT INTO logon VALUES (nextval('logon_ids'), :customer, now());
COMMIT;
