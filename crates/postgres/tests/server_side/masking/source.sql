CREATE TYPE public.mood AS ENUM ('well', 'ill');
CREATE DOMAIN public.short_name AS character varying(60) CHECK (VALUE <> '');
CREATE TYPE public.address AS (street text, code character(5));
CREATE FUNCTION public.shout(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT pg_catalog.upper($1)';
CREATE FUNCTION public.never() RETURNS trigger LANGUAGE plpgsql
  AS 'BEGIN RAISE EXCEPTION ''a trigger acts on %'', NEW; END';

-- Every type, with a column that was dropped and one that old rows have by default alone.
CREATE TABLE public.people (
  gone text,
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email text NOT NULL UNIQUE,
  name public.short_name NOT NULL,
  code character(40),
  phones text[],
  home public.address,
  feels public.mood,
  document jsonb,
  raw bytea,
  born date,
  seen timestamp with time zone,
  number bigint UNIQUE,
  token uuid,
  span int4range,
  amount numeric(20, 4),
  ratio double precision,
  large text,
  kept text,
  country text,
  loud text GENERATED ALWAYS AS (pg_catalog.upper(name::text)) STORED,
  boss text REFERENCES public.people (email) DEFERRABLE INITIALLY DEFERRED,
  CONSTRAINT long_enough CHECK (length(email) > 5)
) WITH (fillfactor = 80);
ALTER TABLE public.people ALTER large SET STORAGE EXTERNAL;
INSERT INTO public.people (gone, email, name, code, phones, home, feels, document, raw, born, seen, number, token,
    span, amount, ratio, large, kept, country)
  SELECT 'Quoxiz gone ' || i, 'quoxiz' || i || '@quoxiz.example', 'Quoxiz Näme ' || i, 'Quoxiz code ' || i,
    ARRAY['Quoxiz phone', i::text], ROW('Quoxiz street ' || i, '80' || i % 100)::public.address, 'well',
    jsonb_build_object('who', 'Quoxiz json ' || i), convert_to('Quoxiz bytes ' || i, 'UTF8'), date '1960-01-01' + i,
    timestamptz '2020-01-01 12:00+00' + i * interval '1 minute', 8421364519000000000 + i * 7919,
    ('51756f78-697a-4341-8e61-' || lpad(i::text, 12, '0'))::uuid, int4range(i, i + 10), i * 1.25, 1.0 / i,
    CASE WHEN i % 20 = 0 THEN repeat('Quoxiz large ' || i || ' ', 1000) END,
    CASE WHEN i % 3 = 0 THEN E'tab\there, line\nthere, back\\slash' END,
    CASE i % 3 WHEN 0 THEN 'CH' WHEN 1 THEN 'DE' END
  FROM generate_series(1, 2000) i;
UPDATE public.people SET boss = 'quoxiz' || id / 2 || '@quoxiz.example' WHERE id > 1;
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE public.people DROP COLUMN gone;
ALTER TABLE public.people ADD COLUMN late text DEFAULT 'Quoxiz late';
DELETE FROM public.people WHERE id > 1990;
CREATE INDEX people_shout ON public.people (public.shout(name));
CREATE INDEX people_swiss ON public.people (name) WHERE country = 'CH';
CREATE INDEX people_covering ON public.people (country) INCLUDE (name);
CREATE INDEX people_document ON public.people USING gin (document);
CREATE INDEX people_raw ON public.people USING hash (raw);
CREATE STATISTICS public.people_together ON country, name FROM public.people;
CREATE TRIGGER never BEFORE INSERT OR UPDATE ON public.people FOR EACH ROW EXECUTE FUNCTION public.never();
ALTER TABLE public.people ENABLE ALWAYS TRIGGER never;
ALTER TABLE public.people ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY nothing ON public.people USING (false);
COMMENT ON TABLE public.people IS 'Quoxiz comment';
COMMENT ON COLUMN public.people.name IS 'Quoxiz comment on a column';

CREATE VIEW public.everybody AS SELECT id, email, name FROM public.people;
CREATE MATERIALIZED VIEW public.names AS SELECT id, name FROM public.everybody;
CREATE UNIQUE INDEX names_id ON public.names (id);
CREATE MATERIALIZED VIEW public.initials AS SELECT id, 'Bird of ' || name AS text FROM public.names;

-- Foreign keys: of one column, of several, and in a circle.
CREATE TABLE public.orders (id serial PRIMARY KEY, buyer text REFERENCES public.people (email), note text);
INSERT INTO public.orders (buyer, note)
  SELECT 'quoxiz' || 1 + i % 1500 || '@quoxiz.example', 'note ' || i FROM generate_series(1, 3000) i;
CREATE TABLE public.houses (street text, number text, first_room int, PRIMARY KEY (street, number));
CREATE TABLE public.rooms (id int PRIMARY KEY, street text, number text, tenant text, period int4range,
  FOREIGN KEY (street, number) REFERENCES public.houses MATCH FULL ON UPDATE CASCADE,
  EXCLUDE USING gist (period WITH &&));
INSERT INTO public.houses SELECT 'Quoxiz road ' || i, i::text, i FROM generate_series(1, 300) i;
INSERT INTO public.rooms SELECT i, 'Quoxiz road ' || i, i::text, 'Quoxiz tenant ' || i, int4range(i * 10, i * 10 + 5)
  FROM generate_series(1, 300) i;
ALTER TABLE public.houses ADD FOREIGN KEY (first_room) REFERENCES public.rooms;

-- Partitions by what is masked, one with its columns in another order, and by what is not.
CREATE TABLE public.events (who text, at date NOT NULL, what text) PARTITION BY RANGE (who);
CREATE TABLE public.events_a PARTITION OF public.events FOR VALUES FROM (MINVALUE) TO ('M');
CREATE TABLE public.events_m (at date NOT NULL, extra int, what text, who text);
ALTER TABLE public.events_m DROP COLUMN extra;
ALTER TABLE public.events ATTACH PARTITION public.events_m FOR VALUES FROM ('M') TO ('r');
CREATE TABLE public.events_rest PARTITION OF public.events DEFAULT PARTITION BY HASH (who);
CREATE TABLE public.events_rest_0 PARTITION OF public.events_rest FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE public.events_rest_1 PARTITION OF public.events_rest FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX events_who ON public.events (who);
INSERT INTO public.events SELECT chr(65 + i % 58) || ' Quoxiz event ' || i, date '2020-01-01' + i, 'what ' || i
  FROM generate_series(1, 2000) i;
CREATE TABLE public.visits (at date, who text, PRIMARY KEY (at, who)) PARTITION BY RANGE (at);
CREATE TABLE public.visits_1 PARTITION OF public.visits FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE public.visits_2 PARTITION OF public.visits FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
INSERT INTO public.visits SELECT date '2020-01-01' + i, 'Quoxiz visitor ' || i FROM generate_series(0, 700) i;

-- Inheritance: a rule for the parent holds for the child, which has one more.
CREATE TABLE public.animals (id int, name text);
CREATE TABLE public.dogs (owner text) INHERITS (public.animals);
INSERT INTO public.animals SELECT i, 'Quoxiz cat ' || i FROM generate_series(1, 50) i;
INSERT INTO public.dogs SELECT i, 'Quoxiz dog ' || i, 'Quoxiz owner ' || i FROM generate_series(1, 50) i;

CREATE UNLOGGED TABLE public.sessions (id int PRIMARY KEY, cookie text);
INSERT INTO public.sessions SELECT i, 'Quoxiz cookie ' || i FROM generate_series(1, 100) i;
CREATE TABLE public.audit (id int, line text);
INSERT INTO public.audit SELECT i, 'Quoxiz line ' || i FROM generate_series(1, 500) i;
CREATE TABLE public.plain (id int PRIMARY KEY, text text);
INSERT INTO public.plain SELECT i, 'stays ' || i FROM generate_series(1, 100) i;
CREATE TABLE public.empty (id int PRIMARY KEY, name text);
CREATE PUBLICATION changes FOR TABLE public.people;
SELECT lo_from_bytea(0, 'Quoxiz large object');
ANALYZE;
