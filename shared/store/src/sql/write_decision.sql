-- Writes a decision: see `write_decision_5` in the migrations.
select w.written as "written!", w.xid as "xid!"
from write_decision_5($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) w
