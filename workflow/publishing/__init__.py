"""What readers get: published figures, pages of claims, articles, the site."""
