-- What breaks a part of a database of Trackio, a line each.
update configs set config = '[1]'
update configs set config = '{'
update configs set config = x'ff'
update configs set config = null
update configs set config = 5
update system_metrics set metrics = '{' where rowid = 2
update system_metrics set metrics = '[1]' where rowid = 3
update system_metrics set timestamp = 'soon' where rowid = 4
update metrics set step = 'x' where rowid = 5
