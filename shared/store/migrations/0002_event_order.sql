-- How events get their order and leave the house.

create table event_head (
    only_row boolean primary key default true check (only_row),
    position bigint not null default 0 check (position >= 0)
) with (fillfactor = 10);
insert into event_head default values;
comment on table event_head is 'The end of the order of events; one row. Whoever holds its row lock gives out positions: '
    'the lock makes them gap-free, which no sequence would.';
comment on column event_head.only_row is 'Makes a second row impossible.';
comment on column event_head.position is 'The last position that was given; 0 before the first.';

create table event_epochs (
    epoch          bigint primary key check (epoch >= 1),
    first_position bigint not null unique check (first_position >= 1)
);
comment on table event_epochs is 'Where each epoch of the lineage begins in the order of events. A cursor of an epoch is '
    'good up to the last position that this history gave in it; what lies beyond was lost with another history.';
comment on column event_epochs.epoch is 'Epoch of the lineage.';
comment on column event_epochs.first_position is 'The first position that was given in it.';

create table event_cursor (
    only_row     boolean primary key default true check (only_row),
    position     bigint not null default 0 check (position >= 0),
    replay_until bigint not null default 0 check (replay_until >= 0),
    fence        bigint not null default 0,
    holder       uuid,
    lease_until  timestamptz not null default '-infinity'
) with (fillfactor = 10);
insert into event_cursor default values;
comment on table event_cursor is 'How far events were published; one row.';
comment on column event_cursor.only_row is 'Makes a second row impossible.';
comment on column event_cursor.position is 'The last position that the broker has acknowledged.';
comment on column event_cursor.replay_until is 'Positions up to here are sent again on request, also where the broker has them.';
comment on column event_cursor.fence is 'Raised with every claim; only the publisher that raised it last moves the cursor.';
comment on column event_cursor.holder is 'The publisher at work.';
comment on column event_cursor.lease_until is 'Until when it is believed, by the clock of the database.';

-- A default of the column and not of a statement: whoever writes an event is named, whichever statement it uses.
alter table events add column written_by text not null default current_setting('application_name');
comment on column events.written_by is 'Name of the process that wrote it.';

create index events_of_task on events (task_id, position) where position is not null;
create index events_of_workspace on events (workspace_id, position) where position is not null;

create function drop_event_partition(before date, published bigint) returns text
    language plpgsql as
$$
declare
    name text;
    kept boolean;
begin
    for name in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'events'::regclass and c.relname ~ '^events_[0-9]{8}$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') < before
        order by c.relname
    loop
        execute format('select exists (select 1 from %I where position is null or position > $1)', name)
            into kept using published;
        if kept then
            return null;
        end if;
        execute format('drop table %I', name);
        return name;
    end loop;
    return null;
end
$$;
comment on function drop_event_partition is 'Drops the oldest partition of events if its day lies before a date and all of '
    'it has been published, and says which. Dropping needs a lock on the table for a moment: set lock_timeout.';

update schema_info set version = 2;
