-- Another address or card of a customer.
\set customer random(1, :customers)
\set card random(0, 1)
\set house random(1, 250)
\set number random(4000000000000000, 5999999999999999)
BEGIN;
SELECT first_name, last_name, credit_limit, email, preferred_address_id, preferred_card_id FROM customers WHERE customer_id = :customer;
\if :card
INSERT INTO card_details VALUES (nextval('card_ids'), :customer, 'debit', :number, '2030-01-01', true, 123) RETURNING card_id AS preferred \gset
UPDATE customers SET preferred_card_id = :preferred WHERE customer_id = :customer;
\else
INSERT INTO addresses VALUES (nextval('address_ids'), :customer, now(), :house, 'Station Road', 'Graz', 'Austria', '80100') RETURNING address_id AS preferred \gset
UPDATE customers SET preferred_address_id = :preferred WHERE customer_id = :customer;
\endif
COMMIT;
