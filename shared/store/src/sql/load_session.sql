-- What a decision sees of one session, as one moment shows it: see `load_session_5` in the migrations.
select
    l.rows as "rows!: Json<Rows>", l.seen_at as "now!: OffsetDateTime", l.lineage_epoch as "lineage!",
    l.owner_fenced as "owner_fenced?", l.key_held as "key_held!"
from load_session_5($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) l
where l.rows is not null
